//! The ids of orders and of their messages.

use crate::Origin;

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
