//! Calls of the store that have no answer yet, and the members of each.
//!
//! A call is answered when its slowest member is. A member may be throttled because its key is in a hot
//! partition, and must not delay others. The members that share its call are protected because the call ends
//! early, and gets twice the time at each further try. Later calls wait for this one only for a short time.

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;

/// How long the next call waits for the last one.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How long a settling call may take at first.
pub(crate) const FIRST_CALL: Duration = Duration::from_secs(5);

/// The call deadline of a call that is made now, after `tries` that failed.
pub(super) fn ends(now: Timestamp, first: Duration, tries: u32) -> Timestamp {
    now.plus(first.saturating_mul(1 << tries.min(8)))
}

/// The first pause before a busy key is looked at again, or a settlement is tried again; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause before the next call, after so many `tries` that were followed by one.
pub(super) fn pause(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST_PAUSE)
}

/// Identifies a call of the store until it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u64);

/// Numbers the calls of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct CallIds(u64);

impl CallIds {
    /// The number of the next call. If it is made, `sent` counts it.
    pub(super) const fn next(&self) -> CallId {
        CallId(self.0)
    }

    /// The next call was made.
    pub(super) const fn sent(&mut self) {
        self.0 += 1;
    }
}

/// The members of the calls of one kind: those that wait for their call, and those whose call has no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Calls<M> {
    pub(super) waiting: Vec<M>,
    sent: Vec<SentCall<M>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SentCall<M> {
    call: CallId,
    members: Vec<M>,
    sent: Timestamp,
    deadline: Timestamp,
    /// From this instant on, the next call does not wait for this one.
    free_from: Timestamp,
}

/// A call that was answered.
pub(super) struct Answered<M> {
    pub(super) members: Vec<M>,
    /// Whether its deadline ended it: it took most of the time that it had.
    pub(super) cut_short: bool,
}

impl<M> Default for Calls<M> {
    fn default() -> Self {
        Self { waiting: Vec::new(), sent: Vec::new() }
    }
}

impl<M> Calls<M> {
    /// Takes the members that are due, of those that wait.
    pub(super) fn take(&mut self, is_due: impl Fn(&M) -> bool) -> Vec<M> {
        match self.waiting.iter().all(&is_due) {
            true => std::mem::take(&mut self.waiting),
            false => self.waiting.extract_if(.., |member| is_due(member)).collect(),
        }
    }

    /// Adds a call that is sent now.
    pub(super) fn add(
        &mut self,
        call: CallId,
        members: Vec<M>,
        now: Timestamp,
        deadline: Timestamp,
        patience: Duration,
    ) {
        let free_from = now.plus(patience);
        if self.sent.is_empty() {
            self.sent.reserve_exact(1);
        }
        self.sent.push(SentCall { call, members, sent: now, deadline, free_from });
    }

    /// Takes the members of a call that was answered. `None` if it is not one of these calls, or
    /// was given up.
    pub(super) fn answered(&mut self, call: CallId, now: Timestamp) -> Option<Answered<M>> {
        let index = self.sent.iter().position(|sent| sent.call == call)?;
        let SentCall { members, sent, deadline, .. } = self.sent.remove(index);
        let cut_short = now.since(sent) >= deadline.since(sent) / 2 && now > sent;
        Some(Answered { members, cut_short })
    }

    /// When a call that is due at `due` can be sent. It does not wait for one that was sent before the clock
    /// stepped back: it is not known for how long that has been on its way.
    pub(super) fn next(&self, due: Timestamp, now: Timestamp) -> Timestamp {
        let last = self.sent.last().filter(|last| last.sent <= now);
        last.map_or(due, |last| due.max(last.free_from))
    }

    /// Whether none waits, and none is on its way.
    pub(super) const fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.sent.is_empty()
    }

    /// The members of calls that are on their way.
    pub(super) fn members(&self) -> impl Iterator<Item = &M> {
        self.sent.iter().flat_map(|sent| &sent.members)
    }

    /// All members: those that wait come first.
    pub(super) fn all(&self) -> impl Iterator<Item = &M> {
        self.waiting.iter().chain(self.members())
    }

    /// Gives up all members: those that are on their way come first.
    pub(super) fn abandon(&mut self) -> Vec<M> {
        let sent = std::mem::take(&mut self.sent).into_iter().flat_map(|sent| sent.members);
        sent.chain(std::mem::take(&mut self.waiting)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn sent(calls: &mut Calls<&'static str>, deadline: u64) {
        calls.add(CallId(7), vec!["a"], at(1_000), at(deadline), Duration::from_millis(300));
    }

    #[test]
    fn each_try_may_take_twice_as_long_as_the_one_before() {
        let first = Duration::from_secs(1);
        let lengths = [0, 1, 2, 8, 9].map(|tries| ends(at(0), first, tries).as_millis());
        assert_eq!(lengths, [1_000, 2_000, 4_000, 256_000, 256_000]);
    }

    #[test]
    fn a_call_that_took_half_of_its_time_was_cut_short() {
        for (answered, is_cut_short) in
            [(1_000, false), (1_499, false), (1_500, true), (2_000, true)]
        {
            let mut calls = Calls::default();
            sent(&mut calls, 2_000);
            let answered = calls.answered(CallId(7), at(answered)).unwrap();
            assert_eq!((answered.members, answered.cut_short), (vec!["a"], is_cut_short));
        }
    }

    #[test]
    fn a_call_without_any_time_that_is_answered_at_once_was_not_cut_short() {
        let mut calls = Calls::default();
        sent(&mut calls, 1_000);
        assert!(!calls.answered(CallId(7), at(1_000)).unwrap().cut_short);
    }

    #[test]
    fn a_call_is_on_its_way_until_it_is_answered_or_given_up() {
        let mut calls = Calls::default();
        assert!(calls.is_empty());
        sent(&mut calls, 2_000);
        assert!(!calls.is_empty());
        assert_eq!(calls.members().collect::<Vec<_>>(), [&"a"]);
        assert!(calls.answered(CallId(8), at(1_100)).is_none(), "another call");
        assert!(calls.answered(CallId(7), at(1_100)).is_some());
        assert!(calls.is_empty() && calls.answered(CallId(7), at(1_100)).is_none());
        sent(&mut calls, 2_000);
        calls.waiting.push("b");
        assert!(calls.all().eq([&"b", &"a"]));
        assert_eq!(calls.abandon(), ["a", "b"]);
        assert!(calls.is_empty());
    }

    #[test]
    fn the_next_call_waits_for_the_last_one_a_short_while() {
        let mut calls = Calls::default();
        let next = |calls: &Calls<_>, due| calls.next(at(due), at(due));
        assert_eq!(next(&calls, 1_000), at(1_000));
        sent(&mut calls, 2_000);
        assert_eq!([next(&calls, 1_100), next(&calls, 1_400)], [at(1_300), at(1_400)]);
        assert_eq!(next(&calls, 900), at(900), "the clock has stepped back");
    }
}
