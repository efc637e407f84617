//! Throttling, when an order asks for it: the write capacity of the table is used up.

use aws_sdk_dynamodb::{
    Client,
    config::{Config, retry::RetryConfig},
    types::AttributeValue,
};

/// An item that is no idempotency record. `prove` knows its id.
const ID: &str = "prove-burst";
/// Each write takes as many units.
const KILOBYTES: usize = 60;
/// Together as many units as a table of ten a second keeps unused, in five minutes, at most.
const WRITES: usize = 50;

/// Writes until DynamoDB refuses to. The table then takes nothing for some seconds, and little afterwards.
pub(crate) async fn use_up(client: &Client, table: &str) {
    let text = AttributeValue::S("x".repeat(KILOBYTES * 1024));
    for _ in 0..WRITES {
        let id = AttributeValue::S(ID.to_owned());
        let put = client.put_item().table_name(table).item("id", id).item("text", text.clone());
        let once = Config::builder().retry_config(RetryConfig::disabled());
        if put.customize().config_override(once).send().await.is_err() {
            return;
        }
    }
}
