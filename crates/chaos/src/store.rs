//! The store of the function that is tested: an embedded DynamoDB into which faults are injected. The rig reads it past
//! them.

use std::time::Duration;

use lambda_idempotency_local::{DynamoDb, FaultId};
use serde_json::{Value, json};

use crate::{error::Error, schedule, store_faults::StoreFault};

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
}

/// An item of the function's own table, where effects are in transactions: an order or an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) placed: u64,
}

impl Row {
    pub(crate) fn new(key: &str, status: &str) -> Self {
        Self { key: key.to_owned(), status: status.to_owned() }
    }

    fn of_item(item: &Value) -> Self {
        let text = |name: &str| item.get(name).and_then(|value| value.get("S")?.as_str());
        Self::new(text("id").unwrap_or_default(), text("status").unwrap_or_default())
    }
}

pub(crate) struct Store {
    pub(crate) dynamodb: DynamoDb,
}

impl Store {
    pub(crate) async fn start() -> Result<Self, Error> {
        Ok(Self { dynamodb: DynamoDb::start().await? })
    }

    /// Injects a fault from now on. Its number, and how long it lasts if it does not end after some requests.
    pub(crate) fn inject(&self, fault: &StoreFault) -> (FaultId, Option<Duration>) {
        let (fault, lasting) = fault.fault();
        (self.dynamodb.faults().add(fault.table(CLAIMS)), lasting)
    }

    pub(crate) fn heal(&self, id: FaultId) {
        self.dynamodb.faults().remove(id);
    }

    pub(crate) fn heal_all(&self) {
        self.dynamodb.faults().clear();
    }

    pub(crate) fn injected(&self, id: FaultId) -> u64 {
        self.dynamodb.faults().injected(id)
    }

    pub(crate) fn rows(&self) -> Result<Vec<Row>, Error> {
        Ok(self.dynamodb.items(CLAIMS)?.iter().map(Row::of_item).collect())
    }

    /// The items of the function's own table.
    pub(crate) fn items(&self) -> Result<Vec<Item>, Error> {
        let id = |item: &Value| item.get(KEY)?.get("S")?.as_str().map(str::to_owned);
        let item = |item: &Value| Item { id: id(item).unwrap_or_default(), placed: counter(item) };
        Ok(self.dynamodb.items(ORDERS)?.iter().map(item).collect())
    }

    /// How often an order is placed at this moment, where effects are in transactions.
    pub(crate) fn placed(&self, order: usize) -> Result<u64, Error> {
        let key = json!({ KEY: { "S": schedule::id(order) } });
        Ok(self.dynamodb.item(ORDERS, &key)?.as_ref().map_or(0, counter))
    }
}

fn counter(item: &Value) -> u64 {
    let placed = item.pointer("/placed/N").and_then(Value::as_str);
    placed.and_then(|placed| placed.parse().ok()).unwrap_or_default()
}
