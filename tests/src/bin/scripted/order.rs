//! The order of a scripted function, and the table in which it is placed.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
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
    #[serde(flatten)]
    pub(super) script: Script,
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
        let text = |value: &str| AttributeValue::S(value.to_owned());
        self.client
            .update_item()
            .table_name(&self.table)
            .key("orderId", text(&order.order_id))
            .update_expression(
                "SET customer = :customer, sku = :sku, quantity = :quantity ADD placed :one",
            )
            .expression_attribute_values(":customer", text(&order.customer))
            .expression_attribute_values(":sku", text(&order.sku))
            .expression_attribute_values(":quantity", AttributeValue::N(order.quantity.to_string()))
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .send()
            .await?;
        Ok(())
    }
}
