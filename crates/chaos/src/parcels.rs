//! The consumer of the messages that the function publishes: the function itself, which drops copies by their ids.
//!
//! Everything that the queue of the messages has taken is delivered, copies too, and some messages a second time after
//! they were acknowledged, as a standard queue may. The consumer counts each id in the table of the orders, in the
//! transaction that completes its key.

use std::collections::{BTreeMap, HashMap};

use lambda_idempotency_local::Disposition;
use serde_json::{Value, json};

use crate::{
    history::{History, Offence},
    sending::Arrival,
};

/// Every how many messages one is delivered again although it was acknowledged.
const AGAIN: usize = 20;
/// Every how many messages the process that has one gets a signal.
pub(crate) const SIGNAL: usize = 60;

/// The messages that were delivered to the consumer.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    /// Every message, by its id in the queue.
    sent: HashMap<String, Parcel>,
    /// How often the consumer has received each id, by the table.
    pub(crate) received: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Parcel {
    record: Value,
    number: usize,
    /// Whether it is delivered again when it was acknowledged.
    again: bool,
    signalled: bool,
}

impl Parcels {
    pub(crate) fn add(&mut self, arrival: &Arrival) -> Value {
        let number = self.sent.len();
        // No number of an order: these are not messages of the schedule.
        let name = format!("parcel:{}:{}:{number}", arrival.order, arrival.part);
        let parcel = format!("o-{} {}", arrival.order, arrival.part);
        let record = json!({
            "messageId": name,
            "body": json!({ "parcel": parcel }).to_string(),
            "attributes": {},
            "messageAttributes": {
                "idempotency-key": { "dataType": "String", "stringValue": arrival.id },
            },
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:parcels",
            "awsRegion": "us-east-1",
        });
        let again = number.is_multiple_of(AGAIN);
        let parcel = Parcel { record: record.clone(), number, again, signalled: false };
        self.sent.insert(name, parcel);
        record
    }

    /// Whether the process that has this message gets a signal: the number of the message then.
    pub(crate) fn signals(&mut self, message: &str) -> Option<usize> {
        let parcel = self.sent.get_mut(message)?;
        let is_due = parcel.number % SIGNAL == SIGNAL / 2 && !parcel.signalled;
        parcel.signalled = true;
        is_due.then_some(parcel.number)
    }

    /// What the queue did with a message; the message if it delivers that again.
    pub(crate) fn delivered(&mut self, message: &str, disposition: Disposition) -> Option<Value> {
        let parcel = self.sent.get_mut(message)?;
        let again = parcel.again && disposition == Disposition::Done;
        parcel.again &= !again;
        again.then(|| parcel.record.clone())
    }

    /// Every id that arrived was received once, and no other.
    pub(crate) fn audit(&self, history: &mut History) {
        let mut arrived: BTreeMap<&str, u64> = BTreeMap::new();
        for send in history.sends.iter().filter(|send| send.arrival.answer.is_taken()) {
            *arrived.entry(&send.arrival.id).or_default() += 1;
        }
        let mut offences = Vec::new();
        for (id, copies) in &arrived {
            match self.received.get(*id).copied().unwrap_or_default() {
                1 => {}
                0 => offences.push((Offence::Lost, format!("the consumer never received {id}"))),
                n => {
                    let what = format!("the consumer received {id} {n} times, of {copies} copies");
                    offences.push((Offence::Doubled, what));
                }
            }
        }
        let unknown = self.received.keys().filter(|id| !arrived.contains_key(&***id)).count();
        if unknown > 0 {
            let what = format!("the consumer received {unknown} unknown id(s)");
            offences.push((Offence::Ledger, what));
        }
        for (offence, what) in offences {
            history.offend(offence, what);
        }
    }
}
