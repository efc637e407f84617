//! Sends the messages that are stored with a completion, and records that they are sent.
//!
//! A record has its outcome after that. If a message cannot be sent, the record is returned: its next delivery
//! finds the completion with its messages, and sends them again, with the same ids.

use std::{sync::Arc, time::Duration};

use super::{
    calls::{CallId, Calls, FIRST_CALL},
    io::{Action, Carried},
    rule::{Next, Outbox, RecordView},
};
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    outbox::{OutgoingMessage, SendError, calling::in_one_call, messages, run_length},
    outcome::Outcome,
    record::IdempotencyRecord,
};

/// Sends the messages of a completion; then the record has this outcome.
pub(super) fn publish(view: &RecordView<'_, '_>, stored: Arc<Held>, outcome: Outcome) -> Next {
    let record = stored.record.clone();
    send(view, &record, Some(stored), outcome)
}

/// The worker that took the key over has settled it as `found` says. It may have died before it sent its messages,
/// and if this delivery is acknowledged no other may come.
pub(super) fn overtaken_by(
    view: &RecordView<'_, '_>,
    held: &Held,
    found: Option<IdempotencyRecord>,
    outcome: Outcome,
) -> Next {
    match found.filter(|found| found.outbox.is_some()) {
        Some(record)
            if matches!(outcome, Outcome::Superseded { .. } | Outcome::Replayed { .. }) =>
        {
            publish(view, Arc::new(held.with_record(record)), outcome)
        }
        _ => Next::End(outcome),
    }
}

/// Sends the messages of this record, which is `stored` or could not be.
pub(super) fn send(
    view: &RecordView<'_, '_>,
    record: &IdempotencyRecord,
    stored: Option<Arc<Held>>,
    outcome: Outcome,
) -> Next {
    let Some(key) = view.record.key() else { return Next::End(outcome) };
    match messages(key, record) {
        Ok(messages) => {
            let outbox = Outbox { at: view.at, messages, stored, outcome: Carried(outcome) };
            if outbox.messages.is_empty() { all_sent(outbox) } else { Next::Send(outbox) }
        }
        Err(error) => unsent(&outcome, SendError::new(error.to_string())),
    }
}

/// The sender has answered.
pub(super) fn sent(outbox: Outbox, answer: Result<(), SendError>) -> Next {
    match answer {
        Err(error) => unsent(&outbox.outcome.0, error),
        Ok(()) if outbox.messages.is_empty() => all_sent(outbox),
        Ok(()) => Next::Send(outbox),
    }
}

/// Records that the messages are sent. If that fails, the record is acknowledged all the same: whoever finds
/// them sends them again, with the same ids.
fn all_sent(outbox: Outbox) -> Next {
    let Outbox { stored, outcome, .. } = outbox;
    match stored {
        Some(stored) => Next::Mark(stored, outcome.0),
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

/// Outboxes that wait for their next call of the sender, and those that wait for its answer.
pub(super) type Outboxes = Calls<Outbox>;

impl Outboxes {
    /// Takes messages that can be sent now, as many as a call may have, and the call deadline, which is at `last` at
    /// the latest.
    pub(super) fn send(&mut self, call: CallId, now: Timestamp, last: Timestamp) -> Option<Action> {
        let members: Vec<_> =
            self.waiting.drain(..in_one_call(self.waiting.iter().map(Outbox::next))).collect();
        if members.is_empty() {
            return None;
        }
        let messages = members.iter().flat_map(Outbox::next).cloned().collect();
        let deadline = last.min(now.plus(FIRST_CALL));
        self.add(call, members, now, deadline, Duration::ZERO);
        Some(Action::Send { call, messages, deadline })
    }

    /// A call was answered: the outboxes in it, each with what is left to be sent, and with what became of the rest.
    pub(super) fn sent(
        &mut self,
        call: CallId,
        mut answers: impl Iterator<Item = Result<(), SendError>>,
        now: Timestamp,
    ) -> Vec<(Outbox, Result<(), SendError>)> {
        let Some(answered) = self.answered(call, now) else { return Vec::new() };
        let mut sent = Vec::with_capacity(answered.members.len());
        for mut outbox in answered.members {
            let members = outbox.next().len();
            // All are taken, so that the next outbox gets its own answers.
            let failed = answers.by_ref().take(members).filter_map(Result::err).last();
            if failed.is_none() {
                outbox.messages.drain(..members);
            }
            sent.push((outbox, failed.map_or(Ok(()), Err)));
        }
        sent
    }
}

impl Outbox {
    /// The messages that can be in its next call.
    fn next(&self) -> &[OutgoingMessage] {
        self.messages.get(..run_length(&self.messages)).unwrap_or_default()
    }
}
