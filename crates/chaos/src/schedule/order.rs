//! An order, and what its handler does.

use serde_json::{Value, json};

use crate::{Origin, Settings, plan::Plan, random::Random};

/// An order: an idempotency key, and what happens to its first execution.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Order {
    pub(crate) plan: Plan,
    /// Further members of the payload: the script that the function follows.
    script: String,
}

impl Order {
    pub(super) fn new(plan: Plan, settings: &Settings, random: &mut Random) -> Self {
        let script = plan.script(settings, random).to_string();
        Self { plan, script }
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.plan == Plan::Doomed
    }

    pub(super) fn body(&self, number: usize, note: usize) -> String {
        let quantity = if self.is_doomed() { 0 } else { 1 };
        let mut body = json!({
            "orderId": id(number), "customer": "c-17", "sku": "mug-blue", "quantity": quantity,
            "note": note,
        });
        if let (Value::Object(body), Ok(Value::Object(script))) =
            (&mut body, serde_json::from_str(&self.script))
        {
            body.extend(script);
        }
        body.to_string()
    }
}

/// More orders than a run has.
const ORDERS: u64 = 10_000_000;

/// The id of a message where its form is given: the sequence number of a stream, which rises, or the UUID of a bus, whose
/// other ids the library does not log. It says which order the message is about.
pub(super) fn id_at(origin: Origin, place: usize, order: usize) -> Option<String> {
    let (place, order) = (place as u64 + 1, order as u64);
    match origin {
        Origin::Kinesis | Origin::DynamoDb => {
            Some(place.saturating_mul(ORDERS).saturating_add(order).to_string())
        }
        Origin::EventBridge => Some(format!("{place:08x}-0000-4000-8000-{order:012x}")),
        Origin::Sqs | Origin::SqsFifo | Origin::Sns => None,
    }
}

/// The order of a message, by its id: `m-17-2`, `p-17`, a sequence number or a UUID.
pub(crate) fn order_of(message: &str) -> Option<usize> {
    if let Ok(sequence) = message.parse::<u64>() {
        return usize::try_from(sequence % ORDERS).ok();
    }
    match *message.split('-').collect::<Vec<_>>() {
        [_, _, _, _, order] => usize::from_str_radix(order, 16).ok(),
        [_, order, ..] => order.parse().ok(),
        _ => None,
    }
}

pub(crate) fn id(order: usize) -> String {
    format!("o-{order}")
}

pub(crate) fn number(id: &str) -> Option<usize> {
    id.strip_prefix("o-")?.parse().ok()
}
