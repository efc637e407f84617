//! The table of orders.

use aws_config::BehaviorVersion;
use aws_sdk_dynamodb::{Client, types::AttributeValue};
use lambda_runtime::Error;
use serde::Deserialize;

use crate::rehearsal::Script;

/// What a customer wants.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Order {
    pub(crate) order_id: String,
    pub(crate) customer: String,
    pub(crate) sku: String,
    pub(crate) quantity: u32,
    #[serde(flatten)]
    pub(crate) script: Script,
}

/// Where orders are placed.
#[derive(Clone)]
pub(crate) struct Orders {
    client: Client,
    table: String,
}

impl Orders {
    pub(crate) async fn from_env() -> Result<Self, Error> {
        let table = std::env::var("ORDERS_TABLE")
            .ok()
            .filter(|table| !table.is_empty())
            .ok_or("set ORDERS_TABLE to the name of the orders table")?;
        let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
        Ok(Self { client: Client::new(&config), table })
    }

    /// Adds one to how often the order was placed: duplicates would show as 2.
    pub(crate) async fn place(&self, order: &Order) -> Result<(), aws_sdk_dynamodb::Error> {
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
