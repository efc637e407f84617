//! Passes each answer of the store to the part that asked, and the record in it to the other invocations of
//! the process.

use super::{CallId, Machine, Present, wanted::Answer};
use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{
    outcome::Completion,
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
            let answers = settled.into_iter().zip(writes).zip(verdicts);
            for ((settling, write), verdict) in answers {
                // Kept only if it has messages: they are sent next.
                let written =
                    write.record.as_ref().filter(|record| record.outbox.is_some()).cloned();
                let completion = write.record.as_ref().and_then(Completion::of);
                self.learn(settling.at, stored(write, &verdict), present);
                self.settled(settling, written, completion, verdict, present);
            }
        } else if let Some(renewed) = self.leases.written(call, now) {
            let answers = renewed.members.into_iter().zip(writes).zip(verdicts);
            for ((kept, write), verdict) in answers {
                self.renewed(kept, write.record, verdict, present);
            }
        } else if let Some(answers) = self.claims.written(call, writes, verdicts, now) {
            self.answered(answers, present);
        }
    }

    pub(super) fn answered(&mut self, answers: Vec<Answer>, present: &mut Present<'_>) {
        for Answer { at, claimed, seen } in answers {
            self.learn(at, seen, present);
            self.claimed(at, claimed, present);
        }
    }
}

/// The record that the store holds after a write, if the verdict says so.
fn stored(write: Write, verdict: &Verdict) -> Option<IdempotencyRecord> {
    match verdict {
        Verdict::Written => write.record,
        Verdict::Found(found) => found.clone(),
        // Its claim stands, as before.
        Verdict::EffectRefused(_) => None,
        // The write may have been applied or not: other invocations must not answer from it.
        Verdict::Unknown(_) if keeps(Rule::LearnsOnlyAnsweredWrites) => None,
        Verdict::Unknown(_) => write.record,
    }
}
