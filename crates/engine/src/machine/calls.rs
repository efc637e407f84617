//! Calls of the store that have no answer yet, and the members of each.
//!
//! A call is answered when its slowest member is. A member may be throttled because its key is in a hot
//! partition, and must not delay others. Those that share its call are protected because the call ends
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

/// The calls of one kind that have no answer yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Calls<M> {
    sent: Vec<Sent<M>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sent<M> {
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
        Self { sent: Vec::new() }
    }
}

impl<M> Calls<M> {
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
            // Most batches have one call of a kind at a time, and a list would make room for four.
            self.sent.reserve_exact(1);
        }
        self.sent.push(Sent { call, members, sent: now, deadline, free_from });
    }

    /// Takes the members of a call that was answered. `None` if it is not one of these calls, or
    /// was given up.
    pub(super) fn answered(&mut self, call: CallId, now: Timestamp) -> Option<Answered<M>> {
        let index = self.sent.iter().position(|sent| sent.call == call)?;
        let Sent { members, sent, deadline, .. } = self.sent.remove(index);
        let cut_short = now.since(sent) >= deadline.since(sent) / 2 && now > sent;
        Some(Answered { members, cut_short })
    }

    /// When a call that is due at `due` can be sent. It does not wait for one that was sent before the clock
    /// stepped back: it is not known for how long that has been on its way.
    pub(super) fn next(&self, due: Timestamp, now: Timestamp) -> Timestamp {
        let last = self.sent.last().filter(|last| last.sent <= now);
        last.map_or(due, |last| due.max(last.free_from))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &M> {
        self.sent.iter().flat_map(|sent| &sent.members)
    }

    /// Forgets all calls.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = M> + use<M> {
        std::mem::take(&mut self.sent).into_iter().flat_map(|sent| sent.members)
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
