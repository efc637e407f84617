//! Passes each answer of the store, and of the sender, to the records that it is for.

use super::{CallId, Machine, Present, step::Event, wanted::Answer};
use lambda_idempotency_core::{
    outbox::SendError,
    record::IdempotencyRecord,
    store::{StoreError, Verdict, Write},
};

impl Machine<'_> {
    pub(super) fn read(
        &mut self,
        call: CallId,
        found: impl Iterator<Item = Result<Option<IdempotencyRecord>, StoreError>>,
        present: &mut Present<'_>,
    ) {
        if let Some(answers) = self.claims.read(call, found, present.now) {
            self.answered(answers, present);
        }
    }

    pub(super) fn written(
        &mut self,
        call: CallId,
        writes: Vec<Write>,
        verdicts: impl Iterator<Item = Verdict>,
        present: &mut Present<'_>,
    ) {
        let now = present.now;
        if let Some(settled) = self.settlements.written(call, now) {
            for (settling, answer) in settled.into_iter().zip(writes.into_iter().zip(verdicts)) {
                let (at, answer) = (settling.at, Box::new(answer));
                self.run(at, Event::Settled { settling, answer }, present);
            }
        } else if let Some(renewed) = self.leases.written(call, now) {
            let members = renewed.members.into_iter();
            for (kept, answer) in members.zip(writes.into_iter().zip(verdicts)) {
                let (at, answer) = (kept.at, Box::new(answer));
                self.run(at, Event::Renewed { kept, answer }, present);
            }
        } else if let Some(answers) = self.claims.written(call, writes, verdicts, now) {
            self.answered(answers, present);
        }
    }

    pub(super) fn sent(
        &mut self,
        call: CallId,
        answers: impl Iterator<Item = Result<(), SendError>>,
        present: &mut Present<'_>,
    ) {
        for (outbox, answer) in self.outboxes.sent(call, answers, present.now) {
            self.run(outbox.at, Event::Sent(outbox, answer), present);
        }
    }

    pub(super) fn answered(&mut self, answers: Vec<Answer>, present: &mut Present<'_>) {
        for answer in answers {
            self.run(answer.at, Event::Claimed(Box::new(answer)), present);
        }
    }
}
