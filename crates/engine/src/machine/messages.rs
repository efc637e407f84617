//! Sends the messages that are stored with a completion, and records that they are sent.
//!
//! A record has its outcome after that. If a message cannot be sent, the record is returned: its next delivery
//! finds the completion with its messages, and sends them again, with the same ids.

use std::sync::Arc;

use super::{
    carried::Carried,
    outboxes::Outbox,
    rule::{Next, Step},
    settle::settle,
};
use lambda_idempotency_core::{
    admission::{Held, Settlement},
    outbox::{SendError, messages},
    outcome::Outcome,
    record::IdempotencyRecord,
};

/// Sends the messages of a completion; then the record has this outcome.
pub(super) fn publish(step: &mut Step<'_, '_>, stored: Arc<Held>, outcome: Outcome) -> Next {
    let record = stored.record.clone();
    send(step, &record, Some(stored), outcome)
}

/// The worker that took the key over has settled it as `found` says. It may have died before it sent its messages,
/// and if this delivery is acknowledged no other may come.
pub(super) fn overtaken_by(
    step: &mut Step<'_, '_>,
    held: &Held,
    found: Option<IdempotencyRecord>,
    outcome: Outcome,
) -> Next {
    match found.filter(|found| found.outbox.is_some()) {
        Some(record)
            if matches!(outcome, Outcome::Superseded { .. } | Outcome::Replayed { .. }) =>
        {
            publish(step, Arc::new(held.with_record(record)), outcome)
        }
        _ => Next::End(outcome),
    }
}

/// Sends the messages of this record, which is `stored` or could not be.
pub(super) fn send(
    step: &mut Step<'_, '_>,
    record: &IdempotencyRecord,
    stored: Option<Arc<Held>>,
    outcome: Outcome,
) -> Next {
    let Some(key) = step.entry.key() else { return Next::End(outcome) };
    match messages(key, record) {
        Ok(messages) => {
            let outbox = Outbox { at: step.at, messages, stored, outcome: Carried(outcome) };
            if outbox.messages.is_empty() { all_sent(step, outbox) } else { Next::Send(outbox) }
        }
        Err(error) => unsent(&outcome, SendError::new(error.to_string())),
    }
}

/// The sender has answered.
pub(super) fn sent(step: &mut Step<'_, '_>, outbox: Outbox, answer: Result<(), SendError>) -> Next {
    match answer {
        Err(error) => unsent(&outbox.outcome.0, error),
        Ok(()) if outbox.messages.is_empty() => all_sent(step, outbox),
        Ok(()) => Next::Send(outbox),
    }
}

/// Records that the messages are sent. If that fails, the record is acknowledged all the same: whoever finds
/// them sends them again, with the same ids.
fn all_sent(step: &mut Step<'_, '_>, outbox: Outbox) -> Next {
    let Outbox { stored, outcome, .. } = outbox;
    match stored {
        Some(stored) => settle(step, stored, Settlement::MarkSent, outcome.0),
        None => Next::End(outcome.0),
    }
}

pub(super) fn unsent(outcome: &Outcome, error: SendError) -> Next {
    let result = outcome.result().cloned();
    Next::End(Outcome::Unsent { result, error })
}

/// The response is due: what is not known to be sent is returned.
pub(super) fn too_late() -> SendError {
    SendError::new("the sender did not answer before the invocation's deadline")
}
