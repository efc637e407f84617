//! The writes of a call, from the first request to their verdicts.

use std::{fmt, ops::DerefMut};

use super::{backoff::Backoff, budget::Budget, failure::RequestFailure};
use crate::{
    record::IdempotencyRecord,
    store::{StoreErrorKind, Verdict, Write},
};

/// One write of a call, from the first request to its verdict.
#[derive(Debug)]
pub struct PendingWrite<'w> {
    /// Its position among the writes of the call.
    pub index: usize,
    /// The write.
    pub write: &'w Write,
    /// A request had no response, so it may have been applied.
    pub in_doubt: bool,
}

impl<'w> PendingWrite<'w> {
    /// A write that was not sent yet.
    #[must_use]
    pub const fn new(index: usize, write: &'w Write) -> Self {
        Self { index, write, in_doubt: false }
    }

    /// The verdict of a write that ends with this failure.
    #[must_use]
    pub fn unknown<D>(&self, failure: RequestFailure<D>) -> Verdict {
        Verdict::Unknown(failure.report(self.in_doubt))
    }

    /// Whether `found` was written by this write: an earlier request was applied and its response
    /// was lost. The token proves it, because no other write has it.
    #[must_use]
    pub fn is_own_work(&self, found: &IdempotencyRecord) -> bool {
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        self.in_doubt && has_token && self.write.leaves(found)
    }
}

/// The writes of a call that have no verdict yet, and the verdicts of the others.
///
/// `M` is a store's own [`PendingWrite`], with what the store keeps of it besides, and `D` the detail of its
/// [`RequestFailure`]s. A round sends each write once: [`next`](Self::next) gives out the writes, and each of them goes back
/// by [`settle`](Self::settle), [`again`](Self::again) or [`fail`](Self::fail).
pub struct Rounds<M, D = ()> {
    /// How many writes the call has.
    writes: usize,
    /// The verdict of each write, from when the first has one.
    verdicts: Vec<Option<Verdict>>,
    pending: Vec<M>,
    /// The last failure of each write that is sent again.
    failures: Vec<(usize, RequestFailure<D>)>,
}

impl<'w, M, D> Rounds<M, D>
where
    M: DerefMut<Target = PendingWrite<'w>>,
    D: Clone,
{
    /// All writes of a call. `member` makes one of them, or says the verdict of one that cannot be sent.
    pub fn begin<V: Into<Verdict>>(
        writes: &'w [Write],
        member: impl Fn(PendingWrite<'w>) -> Result<M, V>,
    ) -> Self {
        let pending = Vec::with_capacity(writes.len());
        let mut rounds = Self { writes: writes.len(), verdicts: vec![], pending, failures: vec![] };
        for (index, write) in writes.iter().enumerate() {
            match member(PendingWrite::new(index, write)) {
                Ok(member) => rounds.pending.push(member),
                Err(verdict) => rounds.decide(index, verdict.into()),
            }
        }
        rounds
    }

    /// The writes to send now, after a pause if one of them failed; with no `backoff` there is no pause. `None` if all
    /// have their verdicts. If no time is left for another request, each of them ends with its last failure, or else with
    /// `too_late`.
    pub async fn next(
        &mut self,
        budget: &Budget<'_>,
        backoff: Option<&mut Backoff>,
        too_late: impl FnOnce() -> RequestFailure<D>,
    ) -> Option<Vec<M>> {
        if self.pending.is_empty() {
            return None;
        }
        let has_time = match backoff {
            Some(backoff) if !self.failures.is_empty() => backoff.pause(budget).await,
            _ => true,
        };
        if !has_time || budget.left().is_zero() {
            self.give_up(&too_late());
            return None;
        }
        self.failures.clear();
        Some(std::mem::take(&mut self.pending))
    }

    /// The class of the first failure of this round, if one was.
    #[must_use]
    pub fn failed(&self) -> Option<StoreErrorKind> {
        self.failures.first().map(|(_, failure)| failure.kind())
    }

    /// The failures of this round after which writes are sent again.
    pub fn failures(&self) -> impl Iterator<Item = &RequestFailure<D>> {
        self.failures.iter().map(|(_, failure)| failure)
    }

    /// The write has its verdict.
    pub fn settle(&mut self, member: &M, verdict: Verdict) {
        self.decide(member.index, verdict);
    }

    /// A verdict is large, so there is room for all from the first one on, and for none while all wait.
    fn decide(&mut self, index: usize, verdict: Verdict) {
        if self.verdicts.is_empty() {
            self.verdicts.resize_with(self.writes, || None);
        }
        if let Some(of_write) = self.verdicts.get_mut(index) {
            *of_write = Some(verdict);
        }
    }

    /// The write is sent again in the next round.
    pub fn again(&mut self, member: M) {
        self.pending.push(member);
    }

    /// The write is sent again if that may succeed, and otherwise ends with this failure.
    pub fn fail(&mut self, mut member: M, failure: RequestFailure<D>) {
        if failure.retry {
            member.in_doubt |= failure.in_doubt;
            self.failures.push((member.index, failure));
            self.pending.push(member);
        } else {
            let verdict = member.unknown(failure);
            self.settle(&member, verdict);
        }
    }

    /// One verdict for each write of the call, in their order, after [`next`](Self::next) has returned `None`.
    #[must_use]
    pub fn verdicts(self) -> Vec<Verdict> {
        self.verdicts.into_iter().flatten().collect()
    }

    /// No time is left: each pending write ends with its last failure.
    fn give_up(&mut self, otherwise: &RequestFailure<D>) {
        for member in std::mem::take(&mut self.pending) {
            let own = self.failures.iter().find(|(index, _)| *index == member.index);
            let failure = own.map_or(otherwise, |(_, failure)| failure).clone();
            let verdict = member.unknown(failure);
            self.settle(&member, verdict);
        }
    }
}

impl<M, D> fmt::Debug for Rounds<M, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pending, verdicts) = (self.pending.len(), self.verdicts.iter().flatten().count());
        f.debug_struct("Rounds").field("pending", &pending).field("verdicts", &verdicts).finish()
    }
}
