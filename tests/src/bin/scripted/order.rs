//! The order of a scripted function, and the table in which it is placed.

use std::collections::HashMap;

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{
    Client,
    error::BuildError,
    types::{AttributeValue, Put, TransactWriteItem, Update},
};
use lambda_runtime::Error;
use serde::Deserialize;

use super::script::Script;

/// A customer's order, and the faults that it asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Order {
    pub(crate) order_id: String,
    pub(super) customer: String,
    pub(super) sku: String,
    pub(super) quantity: u32,
    /// How many messages the order publishes if there is a table for them: one, unless the order says it.
    pub(super) messages: Option<u32>,
    #[serde(flatten)]
    pub(super) script: Script,
}

impl Order {
    /// The mail about a placed order, as an order of its own, so that it is counted.
    pub(super) fn mail(&self, placed: &str) -> Self {
        let (customer, sku) = (self.customer.clone(), self.sku.clone());
        let (quantity, script) = (self.quantity, Script::default());
        let order_id = format!("mail {placed}");
        Self { order_id, customer, sku, quantity, messages: None, script }
    }
}

/// The table of orders, as the orders function has it.
#[derive(Clone)]
pub(super) struct Orders {
    client: Client,
    table: String,
}

impl Orders {
    pub(super) async fn from_env() -> Result<Self, Error> {
        let table = std::env::var("ORDERS_TABLE")?;
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Ok(Self { client: Client::new(&config), table })
    }

    /// Adds one to the number of times that the order was placed: a duplicate makes it 2.
    pub(super) async fn place(&self, order: &Order) -> Result<(), aws_sdk_dynamodb::Error> {
        let request = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("orderId", AttributeValue::S(order.order_id.clone()))
            .update_expression(PLACING)
            .set_expression_attribute_values(Some(values(order)));
        request.send().await?;
        Ok(())
    }

    /// The same as an effect of a transaction.
    pub(super) fn placing(&self, order: &Order) -> Result<TransactWriteItem, BuildError> {
        let update = Update::builder()
            .table_name(&self.table)
            .key("orderId", AttributeValue::S(order.order_id.clone()))
            .update_expression(PLACING)
            .set_expression_attribute_values(Some(values(order)));
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }

    /// An item that shows that this attempt placed its order.
    pub(super) fn attempt(&self, attempt: &str) -> Result<TransactWriteItem, BuildError> {
        let id = AttributeValue::S(format!("attempt {attempt}"));
        let put = Put::builder().table_name(&self.table).item("orderId", id).build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Applies effects in a transaction of their own.
    pub(super) async fn commit(
        &self,
        effects: impl IntoIterator<Item = TransactWriteItem>,
    ) -> Result<(), aws_sdk_dynamodb::Error> {
        let effects = effects.into_iter().collect();
        self.client.transact_write_items().set_transact_items(Some(effects)).send().await?;
        Ok(())
    }
}

const PLACING: &str = "SET customer = :customer, sku = :sku, quantity = :quantity ADD placed :one";

fn values(order: &Order) -> HashMap<String, AttributeValue> {
    let text = |value: &str| AttributeValue::S(value.to_owned());
    let number = |value: u32| AttributeValue::N(value.to_string());
    [
        (":customer", text(&order.customer)),
        (":sku", text(&order.sku)),
        (":quantity", number(order.quantity)),
        (":one", number(1)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
