//! Sends the messages that are stored with a completion, and records that they are sent.
//!
//! A record has its outcome after that. If a message cannot be sent, the record is returned: its next delivery
//! finds the completion with its messages, and sends them again, with the same ids.

use std::sync::Arc;

use super::{
    Action, Machine, Present,
    calls::CallId,
    carried::Carried,
    entry::Stage,
    outboxes::{Outbox, Sent},
    outcomes::recorded,
    settlements::Settling,
};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    admission::{Held, Settlement},
    outbox::{SendError, messages},
    outcome::{Completion, Outcome},
    record::IdempotencyRecord,
    store::StoreError,
};

impl Machine<'_> {
    /// A settlement is recorded, and `record` is stored now. If that has messages, they are sent; otherwise the
    /// record has its outcome.
    pub(super) fn recorded(
        &mut self,
        settling: Settling,
        record: Option<IdempotencyRecord>,
        completion: Option<Completion>,
        present: &mut Present<'_>,
    ) {
        let at = settling.at;
        let is_mark = matches!(settling.settlement, Settlement::MarkSent);
        match record.filter(|record| record.outbox.is_some() && !is_mark) {
            Some(record) => {
                let stored = Arc::new(settling.held.with_record(record));
                self.publish(at, stored, recorded(settling.settled(), completion), present);
            }
            // It was said when the completion was recorded.
            None if is_mark => self.finish(at, settling.settled(), present),
            None => self.finish(at, recorded(settling.settled(), completion), present),
        }
    }

    /// Sends the messages of a completion; then the record has this outcome.
    pub(super) fn publish(
        &mut self,
        at: usize,
        stored: Arc<Held>,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) {
        if !keeps(Rule::SendsBeforeItAcknowledges) {
            return self.finish(at, outcome, present);
        }
        let record = stored.record.clone();
        self.send_from(at, &record, Some(stored), outcome, present);
    }

    /// The worker that took the key over has settled it as `found` says. It may have died before it sent its messages,
    /// and if this delivery is acknowledged no other may come.
    pub(super) fn finish_overtaken(
        &mut self,
        at: usize,
        held: &Held,
        found: Option<IdempotencyRecord>,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) {
        match found.filter(|found| found.outbox.is_some()) {
            Some(record)
                if matches!(outcome, Outcome::Superseded { .. } | Outcome::Replayed { .. }) =>
            {
                self.publish(at, Arc::new(held.with_record(record)), outcome, present);
            }
            _ => self.finish(at, outcome, present),
        }
    }

    /// The completion could not be recorded. The handler has done its work, so its messages are sent all the same:
    /// if it runs again, they have the same ids.
    pub(super) fn publish_unrecorded(
        &mut self,
        settling: Settling,
        error: StoreError,
        present: &mut Present<'_>,
    ) {
        let Settling { at, held, settlement, outcome, .. } = settling;
        let outcome = Outcome::CompletionLost { result: outcome.0.result().cloned(), error };
        match held.write(&settlement, present.now).1 {
            Some(record) if record.outbox.is_some() => {
                if self.is_reply_due(present.now) {
                    return self.unsent(at, &outcome, too_late(), present);
                }
                self.send_from(at, &record, None, outcome, present);
            }
            _ => self.finish(at, outcome, present),
        }
    }

    /// Sends messages whose completion is not stored: a mistake, for the model to find.
    pub(super) fn send_at_once(
        &mut self,
        at: usize,
        held: &Held,
        complete: &Settlement,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) {
        if let (_, Some(record)) = held.write(complete, present.now) {
            self.send_from(at, &record, None, outcome, present);
        }
    }

    fn send_from(
        &mut self,
        at: usize,
        record: &IdempotencyRecord,
        stored: Option<Arc<Held>>,
        outcome: Outcome,
        present: &mut Present<'_>,
    ) {
        let entry = self.records.at(at);
        entry.enter(Stage::Ending);
        let Some(key) = entry.key().cloned() else { return self.finish(at, outcome, present) };
        // Its handler has ended, so nothing of its process has to wait for it.
        self.quarantine.leave(at);
        match messages(&key, record) {
            Ok(messages) => {
                let outcome = Carried(outcome);
                let outbox = Outbox { at, messages, stored, outcome };
                if outbox.messages.is_empty() {
                    return self.all_sent(outbox, present);
                }
                self.outboxes.add(outbox);
            }
            Err(error) => {
                let error = SendError::new(error.to_string());
                self.unsent(at, &outcome, error, present);
            }
        }
    }

    /// Hands messages to the sender.
    pub(super) fn send_messages(&mut self, present: &Present<'_>) {
        let now = present.now;
        let last = self.starts.budget().settle_deadline(now);
        while let Some((messages, deadline)) = self.outboxes.send(self.call_ids.next(), now, last) {
            let call = self.call_ids.next();
            self.call_ids.sent();
            self.actions.push_back(Action::Send { call, messages, deadline });
        }
    }

    /// The sender has answered.
    pub(super) fn sent(
        &mut self,
        call: CallId,
        answers: impl Iterator<Item = Result<(), SendError>>,
        present: &mut Present<'_>,
    ) {
        for sent in self.outboxes.sent(call, answers, present.now) {
            match sent {
                Sent::All(outbox) => self.all_sent(outbox, present),
                Sent::Failed(outbox, _) if !keeps(Rule::MarksOnlyWhatIsSent) => {
                    self.all_sent(outbox, present);
                }
                Sent::Failed(outbox, error) => {
                    self.unsent(outbox.at, &outbox.outcome.0, error, present);
                }
            }
        }
    }

    /// Records that the messages are sent. If that fails, the record is acknowledged all the same: whoever finds
    /// them sends them again, with the same ids.
    fn all_sent(&mut self, outbox: Outbox, present: &mut Present<'_>) {
        let Outbox { at, stored, outcome, .. } = outbox;
        match stored {
            Some(stored) => self.settle(at, stored, Settlement::MarkSent, outcome.0, present),
            None => self.finish(at, outcome.0, present),
        }
    }

    fn unsent(
        &mut self,
        at: usize,
        outcome: &Outcome,
        error: SendError,
        present: &mut Present<'_>,
    ) {
        present.host.returns(at);
        let result = outcome.result().cloned();
        self.finish(at, Outcome::Unsent { result, error }, present);
    }

    /// The response is due: what is not known to be sent is returned.
    pub(super) fn abandon_messages(&mut self, present: &mut Present<'_>) {
        for outbox in self.outboxes.abandon() {
            self.unsent(outbox.at, &outbox.outcome.0, too_late(), present);
        }
    }
}

fn too_late() -> SendError {
    SendError::new("the sender did not answer before the invocation's deadline")
}
