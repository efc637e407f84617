//! Decides what may be looked at, claimed and started now, by time, room and quarantine.

use std::{collections::VecDeque, time::Duration};

use super::{
    budget::{Reserve, TimeBudget},
    record::Stage,
};
use lambda_idempotency_core::clock::Timestamp;

/// How many claims may be on their way or wait for their handler: enough for four full calls of
/// DynamoDB, few enough not to hold keys that will not be used.
const CLAIM_AHEAD: usize = 100;

/// The phase of a batch: which records begin. Keys are looked at in each phase but the last, unless suspects have their turn:
/// then nothing else begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// None, since it is not known yet which records of earlier receives are suspects.
    Looking,
    /// Suspects that go before all other records, a group at a `turn`.
    Suspects { turn: Vec<usize> },
    /// All that are not in quarantine; and suspects, a group at a `turn`, when nothing else runs.
    Open { turn: Vec<usize> },
    /// None, since the time for handlers is over.
    Closed,
}

/// The records that may begin, and those that wait for that.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Starts {
    pub(super) budget: TimeBudget,
    pub(super) concurrency: usize,
    pub(super) phase: Phase,
    /// The time that has to be left while no handler runs.
    reserve: Reserve,
    /// Their keys probably have an idempotency record, which has to be read before they are claimed.
    to_look: VecDeque<usize>,
    /// Their look failed. Their claims come before those of others, because they show which are suspects.
    unseen: VecDeque<usize>,
    /// First of their key and group, and without a claim yet.
    to_claim: VecDeque<usize>,
    /// May start when there is room.
    ready: VecDeque<usize>,
    /// How many handlers run.
    pub(super) running: usize,
}

impl Starts {
    /// For a batch of so many `records`.
    pub(super) fn new(budget: TimeBudget, concurrency: usize, records: usize) -> Self {
        Self {
            budget,
            concurrency: concurrency.max(1),
            phase: Phase::Looking,
            reserve: Reserve::Nothing,
            to_look: VecDeque::new(),
            unseen: VecDeque::new(),
            to_claim: VecDeque::with_capacity(records),
            ready: VecDeque::new(),
            running: 0,
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// The suspects that have their turn.
    pub(super) fn turn(&self) -> &[usize] {
        match &self.phase {
            Phase::Suspects { turn } | Phase::Open { turn } => turn,
            Phase::Looking | Phase::Closed => &[],
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Vec<usize>> {
        match &mut self.phase {
            Phase::Suspects { turn } | Phase::Open { turn } => Some(turn),
            Phase::Looking | Phase::Closed => None,
        }
    }

    /// Record `at` cannot kill the process any more, or waits for another worker.
    pub(super) fn leave_turn(&mut self, at: usize) {
        if let Some(turn) = self.turn_mut() {
            turn.retain(|member| *member != at);
        }
    }

    /// Lets records be claimed and started that are not in quarantine. Records that had to be looked at
    /// join the others to be claimed, the greatest `age` first.
    pub(super) fn open<A: Ord>(&mut self, age: impl Fn(usize) -> A) {
        self.phase = Phase::Open { turn: Vec::new() };
        self.to_claim.make_contiguous().sort_by_key(|at| std::cmp::Reverse(age(*at)));
    }

    /// Ends the time for handlers: no more records are started.
    pub(super) fn close(&mut self) {
        self.phase = Phase::Closed;
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
            if called {
                self.reserve = self.reserve.max(Reserve::Pace);
            }
        }
        let keeps_turn =
            matches!(to, Stage::Claiming | Stage::Ready | Stage::Running | Stage::Settling);
        if !keeps_turn {
            self.leave_turn(at);
        }
        if to == Stage::Ready && self.ready.capacity() == 0 {
            self.ready.reserve_exact(self.to_claim.capacity().min(CLAIM_AHEAD));
        }
        if let Some(queue) = self.queue(to) {
            queue.push_back(at);
        }
        if to == Stage::Running {
            self.running += 1;
        }
    }

    /// The records in this stage, if they are in a queue.
    pub(super) const fn queue(&mut self, stage: Stage) -> Option<&mut VecDeque<usize>> {
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

    /// The records that are to be looked at now, and those that are to be claimed because their look failed, while
    /// `claims` are on their way.
    pub(super) fn next_looks(&self, claims: usize) -> Vec<usize> {
        let looks = self.to_look.iter().chain(&self.unseen).copied();
        looks.take(CLAIM_AHEAD.saturating_sub(claims)).collect()
    }

    /// Whether one more may be looked at before others are claimed.
    pub(super) fn has_room_for_looks(&self) -> bool {
        self.to_look.len() < CLAIM_AHEAD
    }

    /// The records that may start when there is room.
    pub(super) fn ready(&self) -> impl Iterator<Item = usize> {
        self.ready.iter().copied()
    }

    /// The next record that may start and has room for that.
    pub(super) fn next_ready(&self) -> Option<usize> {
        if self.running >= self.concurrency {
            return None;
        }
        match self.turn() {
            [] => self.ready().next().filter(|_| self.is_open()),
            turn => self.ready().find(|at| turn.contains(at)),
        }
    }

    /// The time that has to be left for a handler to start.
    fn reserve(&self) -> Reserve {
        let running = if self.running > 0 { Reserve::Pace } else { Reserve::Nothing };
        self.reserve.max(running)
    }

    /// Whether there is time to start a record now. A record that has `waited` for another worker needs enough.
    pub(super) fn has_time(&self, waited: bool, now: Timestamp, pace: Duration) -> bool {
        let reserve = if waited { Reserve::Tenth } else { self.reserve() };
        self.budget.allows(reserve, now, pace)
    }

    /// The records had to wait for a suspect whose key could not be claimed: those that start need enough time now.
    pub(super) const fn hold_up(&mut self) {
        self.reserve = Reserve::Tenth;
    }

    /// The records for which there is no time any more, of those that are to be claimed.
    /// Records that have `waited` for another worker stay: they may still get its result.
    pub(super) fn late(
        &self,
        waited: impl Fn(usize) -> bool,
        now: Timestamp,
        pace: Duration,
    ) -> Vec<usize> {
        let reserve = self.reserve().min(Reserve::Pace);
        if self.to_claim.is_empty() || self.budget.allows(reserve, now, pace) {
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

    /// Whether nothing runs or is about to. A record that is held back until this is open is not.
    pub(super) fn is_idle(&self) -> bool {
        let none_next = !self.is_open() || (self.ready.is_empty() && self.to_claim.is_empty());
        self.running == 0 && !self.has_looks() && none_next
    }

    /// Whether some have to be looked at, or claimed because their look failed.
    pub(super) fn has_looks(&self) -> bool {
        !(self.to_look.is_empty() && self.unseen.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::record::testing::{START, after},
        *,
    };

    /// In an invocation of 30 s, for two handlers at once.
    fn starts() -> Starts {
        Starts::new(TimeBudget::new(START, after(30_000), Duration::ZERO), 2, 0)
    }

    fn to_look(starts: &mut Starts, at: usize) {
        starts.moved(at, Stage::Queued, Stage::ToLook, false);
    }

    fn to_claim(starts: &mut Starts, at: usize) {
        starts.moved(at, Stage::Queued, Stage::ToClaim, false);
    }

    fn ready(starts: &mut Starts, at: usize) {
        starts.moved(at, Stage::Claiming, Stage::Ready, false);
    }

    /// These records leave their queue.
    fn taken(starts: &mut Starts, from: Stage, records: Vec<usize>) -> Vec<usize> {
        records.iter().for_each(|at| starts.moved(*at, from, Stage::Claiming, false));
        records
    }

    fn start(starts: &mut Starts) {
        starts.moved(9, Stage::Ready, Stage::Running, false);
    }

    const PACE: Duration = Duration::from_secs(1);

    /// An instant at which a handler that takes a second would not end in time.
    fn late() -> Timestamp {
        after(29_000)
    }

    #[test]
    fn what_is_held_back_until_the_opening_counts_as_idle() {
        let queued: [fn(&mut Starts); 2] =
            [|starts| to_claim(starts, 0), |starts| ready(starts, 0)];
        for queue in queued {
            let mut starts = starts();
            queue(&mut starts);
            assert!(starts.is_idle());
            starts.open(|_| 0);
            assert!(!starts.is_idle());
        }
        let mut starts = starts();
        to_look(&mut starts, 0);
        assert!(!starts.is_idle() && starts.has_looks(), "a look is not held back");
        let looks = starts.next_looks(0);
        assert_eq!(taken(&mut starts, Stage::ToLook, looks), [0]);
        assert!(starts.is_idle() && !starts.has_looks());
        start(&mut starts);
        assert!(!starts.is_idle());
    }

    #[test]
    fn a_hundred_records_may_wait_for_a_look() {
        let mut starts = starts();
        (0..CLAIM_AHEAD - 1).for_each(|at| to_look(&mut starts, at));
        assert!(starts.has_room_for_looks());
        to_look(&mut starts, CLAIM_AHEAD - 1);
        assert!(!starts.has_room_for_looks());
        assert_eq!(starts.next_looks(CLAIM_AHEAD - 3), [0, 1, 2], "as many as there is room for");
    }

    #[test]
    fn records_that_cannot_end_in_time_are_taken_unless_they_have_waited() {
        let mut starts = starts();
        (0..3).for_each(|at| to_claim(&mut starts, at));
        let waited = |at| at == 1;
        assert!(starts.late(waited, late(), PACE).is_empty(), "the first one always starts");
        start(&mut starts);
        assert!(starts.late(waited, START, PACE).is_empty(), "there is time");
        let late = starts.late(waited, late(), PACE);
        assert_eq!(taken(&mut starts, Stage::ToClaim, late), [0, 2]);
        assert_eq!(starts.next_claims(0), [1]);
    }

    #[test]
    fn the_first_record_starts_late_unless_it_has_waited() {
        let mut starts = starts();
        assert!(starts.has_time(false, late(), PACE));
        assert!(!starts.has_time(true, late(), PACE));
        start(&mut starts);
        assert!(!starts.has_time(false, late(), PACE));
        assert!(starts.has_time(false, START, PACE));
        starts.moved(9, Stage::Running, Stage::Settling, false);
        assert!(starts.has_time(false, late(), PACE), "the handler was not called");
        start(&mut starts);
        starts.moved(9, Stage::Running, Stage::Settling, true);
        assert!(!starts.has_time(false, late(), PACE), "it was");
        starts.hold_up();
        assert!(starts.has_time(false, after(26_249), PACE), "a tenth of the time is left");
        assert!(!starts.has_time(false, after(26_250), PACE));
    }

    #[test]
    fn each_phase_says_which_records_start() {
        let mut starts = starts();
        (0..2).for_each(|at| ready(&mut starts, at));
        let turn = vec![1];
        for (phase, next) in [
            (Phase::Looking, None),
            (Phase::Suspects { turn: Vec::new() }, None),
            (Phase::Suspects { turn: turn.clone() }, Some(1)),
            (Phase::Open { turn: turn.clone() }, Some(1)),
            (Phase::Open { turn: Vec::new() }, Some(0)),
            (Phase::Closed, None),
        ] {
            starts.phase = phase;
            assert_eq!(starts.next_ready(), next, "{:?}", starts.phase);
        }
        starts.phase = Phase::Open { turn };
        starts.moved(1, Stage::Ready, Stage::Running, false);
        assert_eq!((starts.turn(), starts.next_ready()), (&[1][..], None), "it keeps its turn");
        starts.moved(1, Stage::Running, Stage::Done, true);
        assert_eq!((starts.turn(), starts.next_ready()), (&[][..], Some(0)));
        starts.moved(0, Stage::Ready, Stage::Running, false);
        (2..4).for_each(|at| ready(&mut starts, at));
        starts.moved(2, Stage::Ready, Stage::Running, false);
        assert_eq!(starts.next_ready(), None, "two run, as many as may");
    }

    #[test]
    fn claims_are_sent_many_together_as_room_comes_free() {
        let mut starts = starts();
        assert!(starts.next_claims(0).is_empty());
        (0..3 * CLAIM_AHEAD).for_each(|at| to_claim(&mut starts, at));
        let half = CLAIM_AHEAD / 2;
        let claims = starts.next_claims(0);
        assert_eq!(taken(&mut starts, Stage::ToClaim, claims).len(), CLAIM_AHEAD);
        assert!(starts.next_claims(half + 1).is_empty(), "room for less than half");
        let claims = starts.next_claims(half);
        assert_eq!(taken(&mut starts, Stage::ToClaim, claims).len(), half);
        (0..half - 10).for_each(|at| ready(&mut starts, at));
        assert!(
            starts.next_claims(11).is_empty(),
            "those that wait for their handler count as well"
        );
        assert_eq!(starts.next_claims(10).len(), half);
    }

    #[test]
    fn a_few_records_are_claimed_if_there_is_room_for_all_of_them() {
        let mut starts = starts();
        (0..3).for_each(|at| to_claim(&mut starts, at));
        assert!(starts.next_claims(CLAIM_AHEAD - 2).is_empty());
        assert_eq!(starts.next_claims(CLAIM_AHEAD - 3), [0, 1, 2]);
    }
}
