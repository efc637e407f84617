//! Messages of completed records that are to be sent, and those that were handed to the sender.

use std::{sync::Arc, time::Duration};

use super::{
    calls::{CallId, Calls, FIRST_CALL},
    carried::Carried,
};
use lambda_idempotency_core::{
    admission::Held,
    clock::Timestamp,
    outbox::{OutgoingMessage, SendError, calling::in_one_call, run_length},
    outcome::Outcome,
};

/// The messages of one record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Outbox {
    /// The record's position in the batch.
    pub(super) at: usize,
    /// Those that are not sent yet, in their order.
    pub(super) messages: Vec<OutgoingMessage>,
    /// The completion in which they are stored; `None` if it could not be recorded.
    pub(super) stored: Option<Arc<Held>>,
    /// The delivery's outcome once they are sent.
    pub(super) outcome: Carried<Outcome>,
}

/// Outboxes that wait for their next call of the sender, and those that wait for its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Outboxes {
    waiting: Vec<Outbox>,
    calls: Calls<Outbox>,
}

impl Outboxes {
    pub(super) fn add(&mut self, outbox: Outbox) {
        self.waiting.push(outbox);
    }

    /// Takes messages that can be sent now, as many as a call may have, and the call deadline, which is at `last` at
    /// the latest.
    pub(super) fn send(
        &mut self,
        call: CallId,
        now: Timestamp,
        last: Timestamp,
    ) -> Option<(Vec<OutgoingMessage>, Timestamp)> {
        let members: Vec<_> =
            self.waiting.drain(..in_one_call(self.waiting.iter().map(Outbox::next))).collect();
        if members.is_empty() {
            return None;
        }
        let messages = members.iter().flat_map(Outbox::next).cloned().collect();
        let deadline = last.min(now.plus(FIRST_CALL));
        self.calls.add(call, members, now, deadline, Duration::ZERO);
        Some((messages, deadline))
    }

    /// A call was answered: the outboxes in it, each with what is left to be sent, and with what became of the rest.
    pub(super) fn sent(
        &mut self,
        call: CallId,
        mut answers: impl Iterator<Item = Result<(), SendError>>,
        now: Timestamp,
    ) -> Vec<(Outbox, Result<(), SendError>)> {
        let Some(answered) = self.calls.answered(call, now) else { return Vec::new() };
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

    /// Gives up all outboxes, sent or not.
    pub(super) fn abandon(&mut self) -> Vec<Outbox> {
        self.calls.abandon().chain(std::mem::take(&mut self.waiting)).collect()
    }
}

impl Outbox {
    /// Those of its messages that can be in its next call.
    fn next(&self) -> &[OutgoingMessage] {
        self.messages.get(..run_length(&self.messages)).unwrap_or_default()
    }
}
