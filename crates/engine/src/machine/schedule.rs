//! Decides what may be looked at, claimed and started now, by time, room and quarantine.

use std::collections::VecDeque;

use super::{budget::Budget, record::Stage};
use lambda_idempotency_core::{clock::Timestamp, outcome::NotStarted};

/// How many claims may be on their way or wait for their handler: enough for four full calls of
/// DynamoDB, few enough not to hold keys that will not be used.
const CLAIM_AHEAD: usize = 100;

/// The records that may begin, and those that wait for that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Starts {
    budget: Budget,
    concurrency: usize,
    /// Whether records outside quarantine may be claimed and started. Before that, it has to be known
    /// which records of earlier receives go first.
    is_open: bool,
    /// Their keys probably have an idempotency record, which has to be read before they are claimed.
    to_look: VecDeque<usize>,
    /// Their look failed. Their claims come before those of others, because they show which are suspects.
    unseen: VecDeque<usize>,
    /// First of their key and group, and without a claim yet.
    to_claim: VecDeque<usize>,
    /// May start when there is room.
    ready: VecDeque<usize>,
    /// How many handlers were started and have not ended.
    running: usize,
    /// How many handlers were started and, as far as is known, called.
    started: usize,
    /// Whether the records had to wait for a suspect whose key could not be claimed.
    held_up: bool,
    /// Why no more records are started, if that is decided.
    closed: Option<NotStarted>,
    /// The time for handlers is over.
    stopped: bool,
}

/// What to do with a record that may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Start,
    /// It is returned.
    Return(NotStarted),
}

impl Starts {
    /// Of a batch of so many `records`.
    pub(super) fn new(budget: Budget, concurrency: usize, records: usize) -> Self {
        Self {
            budget,
            concurrency: concurrency.max(1),
            is_open: false,
            to_look: VecDeque::new(),
            unseen: VecDeque::new(),
            to_claim: VecDeque::with_capacity(records),
            ready: VecDeque::new(),
            running: 0,
            started: 0,
            held_up: false,
            closed: None,
            stopped: false,
        }
    }

    pub(super) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Why no more records are started, if that is so.
    pub(super) const fn closed(&self) -> Option<NotStarted> {
        self.closed
    }

    /// How many handlers run at once.
    pub(super) const fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// How many handlers run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Lets records be claimed and started that are not in quarantine. Those that had to be looked at
    /// join the others to be claimed, the greatest `age` first.
    pub(super) fn open<A: Ord>(&mut self, age: impl Fn(usize) -> A) {
        self.is_open = true;
        self.to_claim.make_contiguous().sort_by_key(|at| std::cmp::Reverse(age(*at)));
    }

    /// Starts no more records. Returns whether that was not decided before.
    pub(super) const fn close(&mut self, why: NotStarted) -> bool {
        let is_new = self.closed.is_none();
        if is_new {
            self.closed = Some(why);
        }
        is_new
    }

    /// Record `at` moves from one stage to another. If it ran, `called` says whether its handler was called at all.
    pub(super) fn moved(&mut self, at: usize, was: Stage, to: Stage, called: bool) {
        if let Some(queue) = self.queue(was)
            && let Some(index) = queue.iter().position(|other| *other == at)
        {
            queue.remove(index);
        }
        if was == Stage::Running {
            self.running -= 1;
            self.started -= usize::from(!called);
        }
        if to == Stage::Ready && self.ready.capacity() == 0 {
            self.ready.reserve_exact(self.to_claim.capacity().min(CLAIM_AHEAD));
        }
        if let Some(queue) = self.queue(to) {
            queue.push_back(at);
        }
        if to == Stage::Running {
            self.running += 1;
            self.started += 1;
        }
    }

    /// The records in this stage, if they are in a queue.
    const fn queue(&mut self, stage: Stage) -> Option<&mut VecDeque<usize>> {
        match stage {
            Stage::ToLook => Some(&mut self.to_look),
            Stage::Unseen => Some(&mut self.unseen),
            Stage::ToClaim => Some(&mut self.to_claim),
            Stage::Ready => Some(&mut self.ready),
            _ => None,
        }
    }

    /// How many claims may be made now, at most: one more than what waits.
    pub(super) fn most_claims(&self) -> usize {
        CLAIM_AHEAD.min(1 + self.to_look.len() + self.unseen.len() + self.to_claim.len())
    }

    /// The records that wait to be looked at or claimed.
    pub(super) fn unclaimed(&self) -> impl Iterator<Item = usize> {
        self.to_look.iter().chain(&self.unseen).chain(&self.to_claim).copied()
    }

    pub(super) const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Ends the time for handlers. Says whether it had not ended before.
    pub(super) const fn stop(&mut self) -> bool {
        let first = !self.stopped;
        self.stopped = true;
        first
    }

    /// The records that are to be looked at now, while `claims` are on their way.
    pub(super) fn next_looks(&self, claims: usize) -> Vec<usize> {
        self.to_look.iter().copied().take(CLAIM_AHEAD.saturating_sub(claims)).collect()
    }

    /// The records that are to be claimed now because their look failed.
    pub(super) fn next_unseen(&self, claims: usize) -> Vec<usize> {
        self.unseen.iter().copied().take(CLAIM_AHEAD.saturating_sub(claims)).collect()
    }

    /// Whether one more may be looked at before others are claimed.
    pub(super) fn has_room_for_looks(&self) -> bool {
        self.to_look.len() < CLAIM_AHEAD
    }

    /// The records that may start when there is room.
    pub(super) fn ready(&self) -> impl Iterator<Item = usize> {
        self.ready.iter().copied()
    }

    /// The next record that has room to start and that `admits` lets start.
    pub(super) fn next_ready(&self, admits: impl Fn(usize) -> bool) -> Option<usize> {
        if self.running >= self.concurrency {
            return None;
        }
        self.ready().find(|at| admits(*at))
    }

    /// Whether a record may start now. The first record always may: otherwise a record that is expected to
    /// take long would never start. A record that has waited for another worker needs enough time: at its
    /// next delivery it need not wait, and now its handler would be stopped and its key would stay locked.
    /// So does one that has waited for a suspect whose key could not be claimed.
    pub(super) fn turn(&self, waited: bool, now: Timestamp, pace: std::time::Duration) -> Turn {
        let in_time = match (self.started, waited || self.held_up) {
            (0, false) => true,
            (_, true) => self.budget.allows_late(now, pace),
            (_, false) => self.budget.allows(now, pace),
        };
        match self.closed {
            Some(why) => Turn::Return(why),
            None if in_time => Turn::Start,
            None => Turn::Return(NotStarted::Deadline),
        }
    }

    /// The records had to wait for a suspect whose key could not be claimed.
    pub(super) const fn hold_up(&mut self) {
        self.held_up = true;
    }

    /// The records for which there is no time any more, of those that are to be claimed.
    /// Those that have `waited` for another worker stay: they may still get its result.
    pub(super) fn late(
        &self,
        waited: impl Fn(usize) -> bool,
        now: Timestamp,
        pace: std::time::Duration,
    ) -> Vec<usize> {
        let always = self.started == 0 && !self.held_up;
        if always || self.to_claim.is_empty() || self.budget.allows(now, pace) {
            return Vec::new();
        }
        self.to_claim.iter().copied().filter(|at| !waited(*at)).collect()
    }

    /// The records that are to be claimed now, while `claims` are on their way: many
    /// together, not one at a time as room comes free.
    pub(super) fn next_claims(&self, claims: usize) -> Vec<usize> {
        let room = CLAIM_AHEAD.saturating_sub(claims + self.ready.len());
        let least = self.to_claim.len().min(CLAIM_AHEAD / 2);
        let count = if room < least { 0 } else { room };
        self.to_claim.iter().copied().take(count).collect()
    }

    /// Whether nothing runs or is about to. What is held back until this is open is not.
    pub(super) fn is_idle(&self) -> bool {
        let none_next = !self.is_open || (self.ready.is_empty() && self.to_claim.is_empty());
        self.running == 0 && !self.has_looks() && none_next
    }

    /// Whether some have to be looked at, or claimed because their look failed.
    pub(super) fn has_looks(&self) -> bool {
        !(self.to_look.is_empty() && self.unseen.is_empty())
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
