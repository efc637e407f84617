//! The leases of this invocation: when each ends, and which are to be renewed.
//!
//! A short lease frees the key of a worker that died long before its invocation would have ended. It
//! costs a renewal a third of its length after each write, while the handler runs or waits for its
//! turn, and never beyond the end of the invocation. Renewals that are due together share a call.
//!
//! The result of a step is written with a renewal, also where the lease is long enough: the record is
//! in progress, and has one writer.

use std::time::Duration;

use super::{
    calls::{CallId, Calls, FIRST_CALL, PATIENCE, ends},
    io::Action,
    record::Records,
};
use lambda_idempotency_core::{
    admission::{Held, Settlement},
    clock::Timestamp,
    policy::Policy,
    store::Write,
};

/// The pause after a renewal without an answer.
const PAUSE: Duration = Duration::from_millis(200);

/// How long keys of this invocation are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Terms {
    /// When the last lease ends, renewed or not: with the invocation, its grace included.
    pub(super) end: Timestamp,
    /// The length of a lease that is renewed.
    length: Option<Duration>,
}

impl Terms {
    /// The terms of an invocation that ends at `end`.
    pub(super) fn new(policy: &Policy, end: Timestamp) -> Self {
        // Without a claim there is nothing to renew.
        let length = policy.lease.renewed_length().filter(|_| policy.mode.claims());
        Self { end: end.plus(policy.lease_grace), length }
    }

    /// The end of the lease of a claim made now.
    pub(super) fn lease_until(&self, now: Timestamp) -> Timestamp {
        self.length.map_or(self.end, |length| self.end.min(now.plus(length)))
    }
}

/// One lease that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct KeptLease {
    /// The record's position in the batch.
    pub(super) at: usize,
    /// When it is to be renewed.
    due: Timestamp,
    /// When it ends if it is not renewed.
    lease_until: Timestamp,
    /// How often it had no answer.
    tries: u32,
}

impl KeptLease {
    /// The renewal is to be written over another record of the same claim.
    pub(super) fn at_once(self, now: Timestamp) -> Self {
        Self { due: now, ..self }
    }

    /// The renewal had no answer: it is tried again until the lease has ended.
    pub(super) fn later(self, now: Timestamp) -> Self {
        Self { due: now.plus(PAUSE), tries: self.tries + 1, ..self }
    }
}

/// The leases of records that run, or will.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Leases {
    pub(super) terms: Terms,
    /// Renewals: that of each lease that is kept waits until it is due.
    pub(super) calls: Calls<KeptLease>,
    /// No lease ends, and none is due, before this instant.
    quiet_until: Timestamp,
}

impl Leases {
    pub(super) fn new(terms: Terms) -> Self {
        let quiet_until = Timestamp::from_millis(u64::MAX);
        Self { terms, calls: Calls::default(), quiet_until }
    }

    /// Adds the lease of record `at`, unless it lasts until the end of the invocation: all handlers are
    /// stopped before.
    pub(super) fn keep(&mut self, at: usize, held: &Held) {
        if let (Some(lease_until), Some(length)) = (held.record.lease_until, self.terms.length)
            && lease_until < self.terms.end
        {
            let due = lease_until.minus(length - length / 3);
            self.add(KeptLease { at, due, lease_until, tries: 0 });
        }
    }

    /// Record `at` has steps that are not stored: its lease is renewed now, whether that is due or not. If a
    /// renewal is on its way, they are written after it.
    pub(super) fn write_steps(&mut self, at: usize, held: &Held, now: Timestamp) {
        if let Some(kept) = self.calls.waiting.iter_mut().find(|kept| kept.at == at) {
            kept.due = now;
            self.quiet_until = self.quiet_until.min(now);
        } else if self.calls.members().all(|kept| kept.at != at)
            && let Some(lease_until) = held.record.lease_until
        {
            self.add(KeptLease { at, due: now, lease_until, tries: 0 });
        }
    }

    /// This lease is to be renewed, when that is due.
    pub(super) fn add(&mut self, kept: KeptLease) {
        self.quiet_until = self.quiet_until.min(kept.due).min(kept.lease_until);
        self.calls.waiting.push(kept);
    }

    /// The lease of record `at` is not needed any more.
    pub(super) fn forget(&mut self, at: usize) {
        if let Some(index) = self.calls.waiting.iter().position(|kept| kept.at == at) {
            self.calls.waiting.swap_remove(index);
        }
    }

    /// Removes and returns the leases that have ended, also those whose renewal has no answer yet.
    pub(super) fn take_lapsed(&mut self, now: Timestamp) -> Vec<KeptLease> {
        if now <= self.quiet_until {
            return Vec::new();
        }
        let mut lapsed: Vec<KeptLease> =
            self.calls.waiting.extract_if(.., |kept| now > kept.lease_until).collect();
        lapsed.extend(self.calls.members().filter(|kept| now > kept.lease_until).cloned());
        self.look_ahead(now);
        lapsed
    }

    fn look_ahead(&mut self, now: Timestamp) {
        let standing = self.calls.all().filter(|kept| now <= kept.lease_until);
        let ends = standing.map(|kept| kept.lease_until);
        let due = self.calls.waiting.iter().map(|kept| kept.due);
        self.quiet_until = ends.chain(due).min().unwrap_or(Timestamp::from_millis(u64::MAX));
    }

    /// Takes what is to be renewed, unless a call is on its way that may be back soon. A lease that is due has two
    /// thirds of its length left: a sixth at most is spent waiting for the call before, a sixth on the first try, two on
    /// the second. A lease that is not renewed by itself is written anew only with steps, as it is.
    pub(super) fn send(
        &mut self,
        call: CallId,
        records: &Records<'_>,
        now: Timestamp,
        reply: Timestamp,
    ) -> Option<Action> {
        if now < self.quiet_until || self.calls.next(now, now) > now {
            return None;
        }
        let due = self.calls.waiting.extract_if(.., |kept| kept.due <= now);
        let (mut members, mut writes) = (Vec::new(), Vec::new());
        let length = self.terms.length;
        for kept in due {
            let record = records.of(kept.at);
            let (Some(key), Some(held)) = (record.key(), &record.held) else { continue };
            let lease_until = self.terms.lease_until(now);
            let (guard, record) = held.write(&Settlement::Renew { lease_until }, now);
            writes.push(Write::new(key.clone(), guard, record));
            members.push(kept);
        }
        let lapse = members.iter().map(|kept| kept.lease_until).min()?;
        let tries = members.iter().map(|kept| kept.tries).max().unwrap_or_default();
        // The call must not outlast a lease that it is to extend.
        let share = |most: Duration| length.map_or(most, |length| most.min(length / 6));
        let last = ends(now, share(FIRST_CALL), tries);
        // Nor the invocation: a lease that is not renewed by itself ends after it.
        let last = last.min(reply);
        let deadline = lapse.min(last);
        self.calls.add(call, members, now, deadline, share(PATIENCE));
        self.look_ahead(now);
        Some(Action::Write { call, writes, deadline })
    }

    /// When the next step is due: a renewal, or the end of a lease that has not ended at `now`.
    pub(super) fn next_due(&self, now: Timestamp) -> Option<Timestamp> {
        let standing = self.calls.all().filter(|kept| now <= kept.lease_until);
        let lapses = standing.map(|kept| kept.lease_until.plus(Duration::from_millis(1)));
        let due = self.calls.waiting.iter().map(|kept| self.calls.next(kept.due, now));
        lapses.chain(due).min()
    }
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::policy::Lease;

    use super::{
        super::record::testing::{START, after, call, deadline, held, records},
        *,
    };

    /// The length of a lease that is renewed.
    const LENGTH: Duration = Duration::from_secs(30);

    /// Leases of 30 s, renewed within an invocation of 5 minutes.
    fn leases() -> Leases {
        let mut policy = Policy::default();
        policy.lease = Lease::Renewed { length: LENGTH };
        policy.lease_grace = Duration::ZERO;
        Leases::new(Terms::new(&policy, after(300_000)))
    }

    /// Leases with that of record 0, which ends after 30 s and is to be renewed after 10 s.
    fn one() -> Leases {
        let mut leases = leases();
        leases.keep(0, &held(30_000));
        leases
    }

    /// Sends what is due: the deadline of the call, if there is one.
    fn send(leases: &mut Leases, now: Timestamp) -> Option<Timestamp> {
        let records = records(held(30_000));
        let sent = leases.send(call(), &records, now, after(300_000));
        sent.map(|call| deadline(&call))
    }

    fn lapsed(leases: &mut Leases, now: Timestamp) -> usize {
        leases.take_lapsed(now).len()
    }

    #[test]
    fn a_lease_is_renewed_when_a_third_of_it_is_over() {
        let mut leases = one();
        assert_eq!(leases.next_due(START), Some(after(10_000)));
        assert_eq!(send(&mut leases, after(9_999)), None);
        assert_eq!(send(&mut leases, after(10_000)), Some(after(15_000)), "5 s for the call");
    }

    #[test]
    fn a_lease_stands_up_to_and_including_its_end() {
        let mut leases = one();
        assert_eq!(lapsed(&mut leases, after(30_000)), 0);
        assert_eq!(lapsed(&mut leases, after(30_001)), 1);
        assert_eq!(lapsed(&mut leases, after(30_002)), 0, "it is taken once");
    }

    /// Another one is due before, so that all are looked at.
    #[test]
    fn a_lease_whose_renewal_is_on_its_way_stands_up_to_its_end() {
        let mut leases = one();
        send(&mut leases, after(20_000));
        leases.keep(1, &held(31_000));
        assert_eq!(lapsed(&mut leases, after(30_000)), 0);
        assert_eq!(lapsed(&mut leases, after(30_001)), 1);
    }

    #[test]
    fn a_lease_whose_renewal_is_on_its_way_lapses_as_well() {
        let mut leases = one();
        send(&mut leases, after(20_000));
        assert_eq!(lapsed(&mut leases, after(29_000)), 0);
        assert_eq!(lapsed(&mut leases, after(30_000)), 0);
        assert_eq!(lapsed(&mut leases, after(30_001)), 1);
    }

    #[test]
    fn a_lease_that_is_not_needed_any_more_asks_for_nothing() {
        let mut leases = one();
        leases.forget(0);
        assert_eq!(leases.next_due(START), None);
        assert_eq!(send(&mut leases, after(10_000)), None);
        assert_eq!(lapsed(&mut leases, after(30_001)), 0);
    }

    #[test]
    fn after_one_lease_has_lapsed_the_next_one_is_still_watched() {
        let mut leases = one();
        leases.keep(1, &held(40_000));
        assert_eq!(lapsed(&mut leases, after(30_001)), 1);
        assert_eq!(lapsed(&mut leases, after(40_000)), 0);
        assert_eq!(lapsed(&mut leases, after(40_001)), 1);
    }

    #[test]
    fn renewals_wait_a_sixth_of_the_length_for_the_call_before_at_most() {
        let mut policy = Policy::default();
        policy.lease = Lease::Renewed { length: Duration::from_secs(3) };
        let mut leases = Leases::new(Terms::new(&policy, after(300_000)));
        leases.keep(0, &held(3_000));
        leases.keep(1, &held(3_100));
        assert_eq!(send(&mut leases, after(1_000)), Some(after(1_500)));
        assert_eq!(
            leases.next_due(after(1_000)),
            Some(after(1_500)),
            "not while that may be back soon"
        );
        assert_eq!(send(&mut leases, after(1_499)), None);
        assert!(send(&mut leases, after(1_500)).is_some());
    }

    #[test]
    fn each_try_of_a_renewal_may_take_longer_until_the_lease_ends() {
        let mut leases = one();
        let mut now = after(10_000);
        for deadline in [15_000, 25_200, 30_000] {
            assert_eq!(send(&mut leases, now), Some(after(deadline)));
            now = after(deadline);
            for kept in leases.calls.answered(call(), now).unwrap().members {
                leases.add(kept.later(now));
            }
            now = now.plus(PAUSE);
        }
    }
}
