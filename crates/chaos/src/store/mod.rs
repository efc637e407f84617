//! The store of the function that is tested: where it is, what goes wrong with it, and what is in it.

mod backend;
mod postgres;
mod server;

pub(crate) use backend::{Backend, InjectedFault};
pub(crate) use postgres::Database;

use std::time::Duration;

use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    retry::chain,
};
use serde_json::Value;

use crate::Error;

/// How long the rig waits for an answer of the store.
const PATIENCE: Duration = Duration::from_secs(60);
/// The table of idempotency records.
pub(crate) const CLAIMS: &str = "idempotency";
/// The table of orders, where effects are in transactions.
pub(crate) const ORDERS: &str = "orders";
pub(crate) const KEY: &str = "orderId";

/// An idempotency record, as far as an audit looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: String,
    /// `INPROGRESS`, `COMPLETED`, `FAILED`, or what is wrong with it.
    pub(crate) status: String,
    /// Whether it has messages that are not sent.
    pub(crate) has_messages: bool,
}

/// An item of the function's own table, where effects are in transactions: an order, an attempt, or a message that was
/// received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) placed: u64,
}

impl Row {
    pub(crate) fn new(key: &str, status: &str) -> Self {
        Self { key: key.to_owned(), status: status.to_owned(), has_messages: false }
    }

    /// The row of an item in DynamoDB.
    fn of_item(item: &Value) -> Self {
        let text = |name: &str| item.get(name).and_then(|value| value.get("S")?.as_str());
        Self {
            key: text("id").unwrap_or_default().to_owned(),
            status: text("status").unwrap_or_default().to_owned(),
            has_messages: item.get("outbox").is_some(),
        }
    }

    /// The row of a record, in the words of DynamoDB.
    fn of_record(key: &str, record: Option<&IdempotencyRecord>) -> Self {
        let status = match record.map(|record| record.status) {
            Some(Status::InProgress) => "INPROGRESS",
            Some(Status::Completed) => "COMPLETED",
            Some(Status::PermanentlyFailed) => "FAILED",
            None => "unreadable",
        };
        let has_messages = record.is_some_and(|record| record.outbox.is_some());
        Self { key: key.to_owned(), status: status.to_owned(), has_messages }
    }
}

fn unusable(error: impl std::error::Error + 'static) -> Error {
    Error::Store(chain(&error))
}
