//! The consumer of the messages that the scripted orders function publishes: the function itself, by their ids.

use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
use lambda_idempotency::{Call, CallExt as _, Failure, Mode, Operation, record, source::Sqs};
use serde_json::Value;

/// Counts what arrives in the table of the orders.
#[derive(Clone)]
pub(crate) struct Consumer {
    table: String,
}

impl Consumer {
    /// The consumer, if there is a queue for messages.
    pub(crate) fn from_env() -> Option<Self> {
        std::env::var_os("SCRIPTED_QUEUE")?;
        Some(Self { table: std::env::var("ORDERS_TABLE").ok()? })
    }

    /// Its source. The key is the id of the message, which its copies share.
    pub(crate) fn source() -> Sqs {
        let id = record("messageAttributes.\"idempotency-key\".stringValue");
        Sqs::new().queue("parcels").key(id)
    }

    /// Its operation.
    pub(crate) fn operation() -> Operation {
        Operation::new("receive-parcel").mode(Mode::Transactional)
    }

    /// Adds one to the number of times that this id was received, in the transaction that completes its key.
    pub(crate) async fn receive(self, _parcel: Value, call: Call) -> Result<(), Failure> {
        let id = call.attribute("idempotency-key");
        let id = id.ok_or_else(|| Failure::permanent("the message has no id"))?;
        let name = format!("received {id}");
        let update = Update::builder()
            .table_name(self.table)
            .key("orderId", AttributeValue::S(name))
            .update_expression("ADD placed :one")
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .build()?;
        call.transact(TransactWriteItem::builder().update(update).build())?;
        Ok(())
    }
}
