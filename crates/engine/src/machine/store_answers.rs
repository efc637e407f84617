//! Passes each answer of the store, and of the sender, to the records that it is for.

use super::{
    CallId, Machine, Present, rule::Event, settled::stored, settlements::Written, wanted::Answer,
};
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
            for ((settling, write), verdict) in settled.into_iter().zip(writes).zip(verdicts) {
                let (at, written) = (settling.at, Written::of(&write));
                self.learn(at, stored(write, &verdict), present);
                let verdict = (!matches!(verdict, Verdict::Written)).then(|| Box::new(verdict));
                self.run(at, Event::Settled { settling, written, verdict }, present);
            }
        } else if let Some(renewed) = self.leases.written(call, now) {
            for ((kept, write), verdict) in renewed.members.into_iter().zip(writes).zip(verdicts) {
                let (at, record) = (kept.at, write.record.map(Box::new));
                let verdict = Box::new(verdict);
                self.run(at, Event::Renewed { kept, record, verdict }, present);
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
        for Answer { at, claimed, seen } in answers {
            self.learn(at, seen, present);
            self.run(at, Event::Claimed(claimed), present);
        }
    }

    /// Lets the process remember a record that was read in the store.
    fn learn(&mut self, at: usize, seen: Option<IdempotencyRecord>, present: &mut Present<'_>) {
        if let (Some(key), Some(record)) = (self.records.at(at).key(), seen) {
            present.host.learn(key, record, present.now);
        }
    }
}
