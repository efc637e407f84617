//! The effects that were committed: the effect ledger of a run whose effects are in transactions.
//!
//! Each transaction adds one to a counter of its order and writes an item for its attempt. The counter shows that an
//! order was placed again, also by the same attempt; the item shows by whom. The rig reads them past the proxies,
//! so no fault changes what it sees.

use lambda_idempotency_local::DynamoDb;
use serde_json::{Value, json};

use crate::{
    Error,
    history::{History, Offence},
    ledger::{Step, attempt},
    parcels::Parcels,
    schedule,
};

/// The table of orders.
pub(crate) const ORDERS: &str = "orders";
/// Its key.
pub(crate) const KEY: &str = "orderId";
/// What the key of an attempt's item begins with.
const ATTEMPT: &str = "attempt ";

/// How often an order is placed at this moment.
pub(crate) fn placed(database: &DynamoDb, order: usize) -> Result<u64, Error> {
    let key = json!({ KEY: { "S": schedule::id(order) } });
    Ok(database.item(ORDERS, &key)?.as_ref().map_or(0, counter))
}

/// What the key of a message's item begins with, which the consumer has received.
const RECEIVED: &str = "received ";

/// Adds the effects in these items of the table to the history, and to the messages.
pub(crate) fn read(items: &[Value], history: &mut History, parcels: &mut Parcels) {
    for item in items {
        let id = text(item).unwrap_or_default();
        if let Some(id) = id.strip_prefix(RECEIVED) {
            parcels.received.insert(id.to_owned(), counter(item));
            continue;
        }
        let line = id.strip_prefix(ATTEMPT).map(|of| attempt(Step::Effect, of.split(' ')));
        match (line, schedule::number(id)) {
            (Some(Some(line)), _) => history.committed(&line),
            (None, Some(order)) => history.placed(order, counter(item)),
            _ => history.offend(Offence::Ledger, format!("an unknown item in the table: {id}")),
        }
    }
}

fn counter(item: &Value) -> u64 {
    let placed = item.pointer("/placed/N").and_then(Value::as_str);
    placed.and_then(|placed| placed.parse().ok()).unwrap_or_default()
}

fn text(item: &Value) -> Option<&str> {
    item.get(KEY)?.get("S")?.as_str()
}
