//! A store that holds its callers to the deadlines of their calls.
//!
//! A store in memory answers at once, so it does not notice a call that is made after its deadline, or
//! whose deadline is later than the caller can wait. A [`DeadlineStore`] around any store refuses the
//! first, as [`Store::write`] allows, and its [`Deadlines`] keep a list of both.
//!
//! ```
//! use lambda_idempotency_core::{
//!     clock::Timestamp, key::Key, memory::MemoryStore, store::Store,
//! };
//! use lambda_idempotency_testkit::{clock::ManualClock, deadlines::{BrokenRule, Deadlines}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let clock = ManualClock::new(Timestamp::from_secs(100));
//! let deadlines = Deadlines::default();
//! let store = deadlines.around(MemoryStore::new(), clock);
//! deadlines.allow_until(Timestamp::from_secs(130)); // the end of an invocation
//! let keys = [Key::from_text("order-1")];
//!
//! assert!(store.read(&keys, Timestamp::from_secs(101)).await[0].is_ok());
//! deadlines.assert_kept();
//!
//! assert!(store.read(&keys, Timestamp::from_secs(99)).await[0].is_err());
//! assert!(store.read(&keys, Timestamp::from_secs(131)).await[0].is_ok());
//! let broken: Vec<_> = deadlines.broken().iter().map(|broken| broken.rule).collect();
//! assert_eq!(broken, [BrokenRule::CalledTooLate, BrokenRule::OutlastsTheInvocation]);
//! # }
//! ```

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Status},
    store::{Capabilities, Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};

/// A rule for the deadlines of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BrokenRule {
    /// The call was made after its own deadline. It was refused, and nothing was applied.
    CalledTooLate,
    /// The deadline is later than [`Deadlines::allow_until`] allows.
    OutlastsTheInvocation,
    /// The deadline of a renewal is later than the lease that it renews, or that of a claim later
    /// than the lease that it asks for. The caller would wait for an answer that is of no use.
    OutlastsTheLease,
}

/// A call that broke a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BrokenDeadline {
    /// The rule.
    pub rule: BrokenRule,
    /// When the call was made.
    pub made_at: Timestamp,
    /// Its deadline.
    pub call_deadline: Timestamp,
}

/// The rules for the deadlines of calls, and the calls that broke them. Clones share both.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    latest: Option<Timestamp>,
    broken: Vec<BrokenDeadline>,
}

impl Deadlines {
    /// Wraps `inner`, so that its calls are checked on this clock.
    #[must_use]
    pub fn around<S: Store>(&self, inner: S, clock: impl Clock) -> DeadlineStore<S> {
        DeadlineStore { inner, clock: Arc::new(clock), deadlines: self.clone() }
    }

    /// From now on, deadlines after `latest` break a rule. Of several calls of this method the latest
    /// instant counts, because invocations that run at the same time share a store. Default: any
    /// deadline is allowed that does not outlast its lease.
    pub fn allow_until(&self, latest: Timestamp) {
        let mut state = self.lock();
        state.latest = state.latest.max(Some(latest));
    }

    /// The calls that broke a rule, in the order they were made.
    #[must_use]
    pub fn broken(&self) -> Vec<BrokenDeadline> {
        self.lock().broken.clone()
    }

    /// Panics if a call broke a rule.
    ///
    /// # Panics
    /// If [`broken`](Self::broken) is not empty.
    #[track_caller]
    pub fn assert_kept(&self) {
        let broken = self.broken();
        assert!(broken.is_empty(), "calls of the store that break a rule: {broken:?}");
    }

    /// Checks a call. Says whether it is too late for it.
    fn check(&self, writes: &[Write], made_at: Timestamp, call_deadline: Timestamp) -> bool {
        let mut state = self.lock();
        let is_late = made_at > call_deadline;
        let outlasts = state.latest.is_some_and(|latest| call_deadline > latest);
        let lease = writes.iter().filter_map(lease).min();
        let rules = [
            (is_late, BrokenRule::CalledTooLate),
            (outlasts, BrokenRule::OutlastsTheInvocation),
            (lease.is_some_and(|lease| call_deadline > lease), BrokenRule::OutlastsTheLease),
        ];
        let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
        state.broken.extend(broken.map(|(_, rule)| BrokenDeadline {
            rule,
            made_at,
            call_deadline,
        }));
        is_late
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A store whose calls are checked; see [`Deadlines::around`]. Clones share the list of broken rules.
#[derive(Clone)]
pub struct DeadlineStore<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    deadlines: Deadlines,
}

impl<S> DeadlineStore<S> {
    /// The inner store.
    #[must_use]
    pub const fn inner(&self) -> &S {
        &self.inner
    }

    fn is_too_late(&self, writes: &[Write], call_deadline: Timestamp) -> bool {
        self.deadlines.check(writes, self.clock.now(), call_deadline)
    }
}

/// The lease within which an answer to this write is of use: of a renewal the one that is renewed, of
/// a claim the new one. Settlements have none.
fn lease(write: &Write) -> Option<Timestamp> {
    let record = write.record.as_ref()?;
    let is_kept = record.status == Status::InProgress && record.owner.is_some();
    match &write.guard {
        Guard::Unchanged(seen) if is_kept && seen.owner == record.owner => seen.lease_until,
        Guard::Absent | Guard::Unchanged(_) if is_kept => record.lease_until,
        _ => None,
    }
}

fn too_late() -> StoreError {
    let context = "the deadline of the call was over when it was made";
    StoreError::new(StoreErrorKind::Unavailable, context).with_doubt(false)
}

impl<S: Store> Store for DeadlineStore<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            if self.is_too_late(writes, call_deadline) {
                return writes.iter().map(|_| Verdict::Unknown(too_late())).collect();
            }
            self.inner.write(writes, call_deadline).await
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            if self.is_too_late(&[], call_deadline) {
                return keys.iter().map(|_| Err(too_late())).collect();
            }
            self.inner.read(keys, call_deadline).await
        })
    }
}

impl<S: fmt::Debug> fmt::Debug for DeadlineStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadlineStore")
            .field("inner", &self.inner)
            .field("deadlines", &self.deadlines)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lambda_idempotency_core::{memory::MemoryStore, record::Owner, store::RecordVersion};

    use super::*;
    use crate::clock::ManualClock;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn store() -> (ManualClock, Deadlines, DeadlineStore<MemoryStore>) {
        let (clock, deadlines) = (ManualClock::new(at(100)), Deadlines::default());
        let store = deadlines.around(MemoryStore::new(), clock.clone());
        (clock, deadlines, store)
    }

    fn claimed(by: u128, lease_until: Timestamp) -> IdempotencyRecord {
        let mut record = IdempotencyRecord::new(Status::InProgress, at(4000));
        record.owner = Some(Owner::from_bits(by));
        record.lease_until = Some(lease_until);
        record
    }

    fn write(guard: Guard, record: IdempotencyRecord) -> Write {
        Write::new(Key::from_text("k"), guard, Some(record))
    }

    fn rules(deadlines: &Deadlines) -> Vec<BrokenRule> {
        deadlines.broken().iter().map(|broken| broken.rule).collect()
    }

    #[tokio::test]
    async fn at_its_deadline_a_call_is_in_time() {
        let (clock, deadlines, store) = store();
        let claim = [write(Guard::Absent, claimed(1, at(200)))];
        assert!(matches!(store.write(&claim, at(100)).await[..], [Verdict::Written]));
        clock.advance(Duration::from_millis(1));
        let verdicts = store.write(&claim, at(100)).await;
        let [Verdict::Unknown(error)] = &verdicts[..] else { panic!("{verdicts:?}") };
        assert!(error.is_transient() && !error.may_have_applied());
        assert!(store.read(&[Key::from_text("k")], at(100)).await[0].is_err());
        assert_eq!(rules(&deadlines), [BrokenRule::CalledTooLate; 2]);
    }

    #[tokio::test]
    async fn the_latest_of_the_invocations_counts() {
        let (_, deadlines, store) = store();
        for end in [130, 160, 140] {
            deadlines.allow_until(at(end));
        }
        let keys = [Key::from_text("k")];
        store.read(&keys, at(160)).await[0].as_ref().unwrap();
        deadlines.assert_kept();
        store.read(&keys, at(161)).await[0].as_ref().unwrap();
        assert_eq!(rules(&deadlines), [BrokenRule::OutlastsTheInvocation]);
    }

    #[tokio::test]
    async fn claims_and_renewals_end_with_their_leases() {
        let (_, deadlines, store) = store();
        let held = claimed(1, at(110));
        let renewal = write(Guard::Unchanged(RecordVersion::of(&held)), claimed(1, at(120)));
        let takeover = write(Guard::Unchanged(RecordVersion::of(&held)), claimed(2, at(120)));
        let claim = write(Guard::Absent, claimed(1, at(110)));
        let settlement = write(Guard::OwnedBy(Owner::from_bits(1)), claimed(1, at(110)));
        for (write, last) in
            [(&renewal, 110), (&takeover, 120), (&claim, 110), (&settlement, u64::MAX)]
        {
            let before = deadlines.broken().len();
            store.write(std::slice::from_ref(write), at(last)).await;
            assert_eq!(deadlines.broken().len(), before, "{write:?}");
            if last < u64::MAX {
                store.write(std::slice::from_ref(write), at(last + 1)).await;
                assert_eq!(
                    rules(&deadlines)[before..],
                    [BrokenRule::OutlastsTheLease],
                    "{write:?}"
                );
            }
        }
    }

    #[test]
    #[should_panic = "break a rule"]
    fn a_broken_rule_is_reported() {
        let deadlines = Deadlines::default();
        assert!(deadlines.check(&[], at(100), at(99)));
        deadlines.assert_kept();
    }
}
