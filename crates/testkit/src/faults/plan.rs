//! Combines all faults that apply to one call.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind, Verdict, Write},
};

use super::fault::Action;

type Waits = Vec<(Arc<dyn Clock>, Duration)>;

pub(super) struct Plan {
    members: Vec<Member>,
    before: Waits,
    after: Waits,
    /// The deadline came during a wait.
    late: bool,
}

#[derive(Clone, Default)]
struct Member {
    refused: Option<StoreErrorKind>,
    lost: bool,
    repeated: Vec<usize>,
}

impl Plan {
    pub(super) fn new(members: usize) -> Self {
        let members = vec![Member::default(); members];
        Self { members, before: Vec::new(), after: Vec::new(), late: false }
    }

    pub(super) fn refuse_all(&mut self, kind: StoreErrorKind) {
        for member in &mut self.members {
            member.refused = Some(kind);
        }
    }

    pub(super) fn add(&mut self, action: &Action, struck: &[bool]) {
        if let Action::Delay { clock, before, after } = action {
            if !before.is_zero() {
                self.before.push((Arc::clone(clock), *before));
            }
            if !after.is_zero() {
                self.after.push((Arc::clone(clock), *after));
            }
            return;
        }
        for (member, _) in self.members.iter_mut().zip(struck).filter(|(_, struck)| **struck) {
            match action {
                // The first fault that refuses a member decides its error.
                Action::Refuse(kind) => member.refused = member.refused.or(Some(*kind)),
                Action::LoseAnswer => member.lost = true,
                Action::Duplicate { later } => member.repeated.push(*later),
                Action::Delay { .. } => {}
            }
        }
    }

    /// Waits before the call reaches the store. A call that has not arrived by the deadline never
    /// arrives.
    pub(super) async fn wait_before(&mut self, call_deadline: Timestamp) {
        self.late |= !wait(&self.before, call_deadline).await;
    }

    /// Waits before the response. If it does not arrive by the deadline, the writes were applied
    /// but the response is lost.
    pub(super) async fn wait_after(&mut self, call_deadline: Timestamp) {
        self.late |= !wait(&self.after, call_deadline).await;
    }

    /// The members that reach the store.
    pub(super) fn passing<T: Clone>(&self, members: &[T]) -> Vec<T> {
        let reaches = |(_, member): &(&T, &Member)| member.refused.is_none() && !self.late;
        members.iter().zip(&self.members).filter(reaches).map(|(m, _)| m.clone()).collect()
    }

    /// The writes to repeat, each after a number of further calls. Writes that never reached the
    /// store are not repeated.
    pub(super) fn echoes(&self, writes: &[Write]) -> Vec<(usize, Vec<Write>)> {
        let mut echoes = Vec::new();
        for (write, member) in writes.iter().zip(&self.members) {
            if member.refused.is_none() && !self.late {
                echoes.extend(member.repeated.iter().map(|later| (*later, vec![write.clone()])));
            }
        }
        echoes
    }

    /// The verdicts for the caller, from the store's verdicts on the members that reached it.
    pub(super) fn verdicts(&self, answered: Vec<Verdict>) -> Vec<Verdict> {
        self.merge(answered, Verdict::Unknown)
    }

    pub(super) fn answers(
        &self,
        answered: Vec<Result<Option<IdempotencyRecord>, StoreError>>,
    ) -> Vec<Result<Option<IdempotencyRecord>, StoreError>> {
        self.merge(answered, Err)
    }

    fn merge<T>(&self, answered: Vec<T>, error: impl Fn(StoreError) -> T) -> Vec<T> {
        let mut answered = answered.into_iter();
        let mut merged = Vec::with_capacity(self.members.len());
        for member in &self.members {
            if let Some(kind) = member.refused {
                merged.push(error(StoreError::new(kind, "injected by a test, not applied")));
                continue;
            }
            let answer = answered.next();
            merged.push(if member.lost || self.late {
                let context = "injected by a test, no answer";
                error(StoreError::new(StoreErrorKind::Unavailable, context).with_doubt(true))
            } else {
                let Some(answer) = answer else { break };
                answer
            });
        }
        merged
    }
}

/// Waits for all waits, or until the deadline. Returns whether all ended before it.
async fn wait(waits: &Waits, call_deadline: Timestamp) -> bool {
    for (clock, duration) in waits {
        let left = call_deadline.since(clock.now());
        clock.sleep((*duration).min(left)).await;
        if *duration > left {
            return false;
        }
    }
    true
}
