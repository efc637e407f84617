//! Decides what may be looked at, claimed and started now, by time, room and quarantine.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use super::{
    Machine, Present,
    budget::{Reserve, TimeBudget},
    record::{BatchRecord, Stage},
    rule::RecordEvent,
};
use lambda_idempotency_core::{clock::Timestamp, outcome::NotStarted};

/// How many claims may be on their way or wait for their handler: enough for four full calls of
/// DynamoDB, few enough not to hold keys that will not be used.
const CLAIM_AHEAD: usize = 100;

/// The phase of a batch: which records begin. Keys are looked at in each phase but the last, unless suspects have their turn:
/// then nothing else begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Phase {
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
    budget: TimeBudget,
    concurrency: usize,
    phase: Phase,
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
    running: usize,
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

    pub(super) const fn budget(&self) -> &TimeBudget {
        &self.budget
    }

    /// How many handlers run.
    pub(super) const fn running(&self) -> usize {
        self.running
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open { .. })
    }

    /// The suspects that have their turn.
    pub(super) fn turn(&self) -> &[usize] {
        match &self.phase {
            Phase::Suspects { turn } | Phase::Open { turn } => turn,
            Phase::Looking | Phase::Closed => &[],
        }
    }

    fn turn_mut(&mut self) -> Option<&mut Vec<usize>> {
        match &mut self.phase {
            Phase::Suspects { turn } | Phase::Open { turn } => Some(turn),
            Phase::Looking | Phase::Closed => None,
        }
    }

    /// Record `at` cannot kill the process any more, or waits for another worker.
    fn leave_turn(&mut self, at: usize) {
        if let Some(turn) = self.turn_mut() {
            turn.retain(|member| *member != at);
        }
    }

    /// Lets records be claimed and started that are not in quarantine. Records that had to be looked at
    /// join the others to be claimed, the greatest `age` first.
    fn open<A: Ord>(&mut self, age: impl Fn(usize) -> A) {
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

    /// The next record that may start and has room for that.
    fn next_ready(&self) -> Option<usize> {
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

/// The schedule: starts looks, claims ahead of their handlers, handlers while there is room and time, and quarantine groups when
/// nothing else runs.
impl Machine<'_> {
    /// Begins all that can begin.
    pub(super) fn launch(&mut self, present: &mut Present<'_>) {
        while let Some(at) = self.next_to_wake(present.now) {
            self.run(at, RecordEvent::Woken, present);
        }
        // Again, because records that are answered without the store make room for others.
        let mut again = true;
        while again {
            again = self.look(present);
            self.advance();
            self.start_ready(present);
            again |= self.claim_ahead(present);
            again |= self.admit_group(present);
            again |= self.send_claims(present);
        }
    }

    /// A record whose wake-up time has come, or whose wait began before the clock stepped back.
    fn next_to_wake(&self, now: Timestamp) -> Option<usize> {
        let (wake, at) = self.waiting.next()?;
        let stepped_back = || match self.records.get(at).map(BatchRecord::stage) {
            Some(Stage::Waiting(wait)) => wait.since > now,
            _ => false,
        };
        (wake <= now || stepped_back()).then_some(at)
    }

    /// Ends the turn of suspects that cannot kill the process any more: their handler has ended, and their
    /// settlement is slow, or their claim had no answer and is undone. The store does not know that yet, so
    /// other processes still suspect them.
    pub(super) fn leave_slow(&mut self, now: Timestamp) {
        if self.starts.turn().is_empty() {
            return;
        }
        self.settlements.slow(now).for_each(|at| self.starts.leave_turn(at));
        for at in self.claims.undone() {
            if self.starts.turn().contains(&at) {
                self.starts.hold_up();
                self.starts.leave_turn(at);
            }
        }
    }

    /// Looks at keys that probably have an idempotency record.
    fn look(&mut self, present: &mut Present<'_>) -> bool {
        if !self.starts.turn().is_empty() {
            return false;
        }
        let again = self.claim(self.starts.next_looks(self.claims.open()), present);
        self.claim(self.starts.next_unseen(self.claims.open()), present) || again
    }

    /// Enters the next phase when its time has come: suspects begin once all looks are answered, and other records once the
    /// suspects that go first have gone.
    fn advance(&mut self) {
        if self.starts.has_looks() || self.claims.are_new() || !self.starts.turn().is_empty() {
            return;
        }
        if self.starts.phase == Phase::Looking {
            let receives = self.records.all().iter().map(|entry| entry.given().receives);
            self.quarantine.choose_side(receives.max().unwrap_or_default());
            self.starts.phase = Phase::Suspects { turn: Vec::new() };
        }
        // A claim that is slow would keep suspects from their turn, and they the others.
        if matches!(self.starts.phase, Phase::Suspects { .. })
            && (self.claims.are_wanted() || self.has_claimed() || !self.quarantine.goes_first())
        {
            let records = &self.records;
            self.starts.open(|at| records.get(at).map(BatchRecord::age));
        }
    }

    /// Whether a record holds a claim that was made because its look failed. It starts at once: a suspect that
    /// kills the process must not take it along.
    fn has_claimed(&self) -> bool {
        let mut ready = self.starts.ready().filter_map(|at| self.records.get(at));
        ready.any(|entry| entry.held().is_some())
    }

    fn start_ready(&mut self, present: &mut Present<'_>) {
        while let Some(at) = self.starts.next_ready() {
            let lease = self.records.at(at).held().and_then(|held| held.record.lease_until);
            // It may have waited for its turn for longer than its lease.
            let has_lapsed = lease.is_some_and(|until| present.now > until);
            let event = match self.has_time(at, present) {
                _ if has_lapsed => RecordEvent::Close(NotStarted::Lease),
                true => RecordEvent::Start,
                false => RecordEvent::Close(NotStarted::Deadline),
            };
            self.run(at, event, present);
        }
    }

    fn has_time(&self, at: usize, present: &Present<'_>) -> bool {
        let waited = self.records.get(at).is_some_and(BatchRecord::has_waited);
        self.starts.has_time(waited, present.now, present.host.pace())
    }

    fn claim_ahead(&mut self, present: &mut Present<'_>) -> bool {
        if !self.starts.turn().is_empty() || !self.starts.is_open() {
            return false;
        }
        let records = &self.records;
        let waited = |at| records.get(at).is_some_and(BatchRecord::has_waited);
        for at in self.starts.late(waited, present.now, present.host.pace()) {
            self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
        }
        self.claim(self.starts.next_claims(self.claims.open()), present)
    }

    /// Whether suspects wait for a claim that has no answer. A slow claim of a record that nothing delivers again may be
    /// tried for minutes, so they do not wait for that: once it is granted, its record waits for them.
    fn claims_hold_up_suspects(&self) -> bool {
        if self.setting.is_redelivered { self.claims.are_wanted() } else { self.claims.are_new() }
    }

    /// Gives a quarantine group its turn when nothing else runs.
    fn admit_group(&mut self, present: &mut Present<'_>) -> bool {
        let is_clear = self.starts.is_idle()
            && !self.claims_hold_up_suspects()
            && self.starts.turn().is_empty()
            && self.settlements.are_slow(present.now);
        let is_next = || match self.starts.phase {
            Phase::Looking | Phase::Closed => false,
            Phase::Suspects { .. } => self.quarantine.goes_first(),
            Phase::Open { .. } => self.quarantine.is_waiting(),
        };
        if !is_clear || !is_next() {
            return false;
        }
        let held_back = self.quarantine.held_back();
        if !held_back.is_empty() {
            for at in held_back {
                self.run(at, RecordEvent::Close(NotStarted::Quarantine), present);
            }
            return true;
        }
        let group = self.quarantine.next_group(self.starts.concurrency);
        let is_late = |at: &usize| !self.has_time(*at, present);
        if group.first().is_some_and(is_late) {
            for at in group {
                self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
            }
        } else {
            if let Some(turn) = self.starts.turn_mut() {
                turn.clone_from(&group);
            }
            self.claim(group, present);
        }
        true
    }

    /// Gives these records their turn to be looked at or claimed. Says whether one needed no call of the store.
    fn claim(&mut self, records: Vec<usize>, present: &mut Present<'_>) -> bool {
        let mut answered = false;
        for at in records {
            answered |= self.run(at, RecordEvent::Turn, present) != Stage::Claiming;
        }
        answered
    }
}

/// The first pause between two looks at a busy key; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The pause before the next look at a busy key, after `looks` earlier ones.
pub(super) fn pause(looks: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << looks.min(8)).min(LONGEST_PAUSE)
}

/// The waiting records, by their wake-up times and positions in the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct BusyKeys(BTreeSet<(Timestamp, usize)>);

impl BusyKeys {
    /// Record `at` moves from one stage to another.
    pub(super) fn moved(&mut self, at: usize, was: Stage, to: Stage) {
        if let Stage::Waiting(wait) = was {
            self.0.remove(&(wait.wake, at));
        }
        if let Stage::Waiting(wait) = to {
            self.0.insert((wait.wake, at));
        }
    }

    /// When the next record wakes.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.next().map(|(wake, _)| wake)
    }

    /// When the next record wakes, and which.
    pub(super) fn next(&self) -> Option<(Timestamp, usize)> {
        self.0.first().copied()
    }

    /// The waiting records.
    pub(super) fn all(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(_, at)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::record::testing::{START, after},
        *,
    };

    /// Finding to an invocation of 30 s, for two handlers at once.
    fn starts() -> Starts {
        Starts::new(TimeBudget::new(START, after(30_000)), 2, 0)
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
