//! How much of the invocation's time is left, and for what.

use std::time::Duration;

use lambda_idempotency_core::clock::Timestamp;

/// The instants at which the parts of an invocation end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TimeBudget {
    begun: Timestamp,
    /// When running handlers are stopped.
    stop: Timestamp,
    end: Timestamp,
}

/// The time that has to be left for a handler to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Reserve {
    /// None: a record that is expected to take long would never start otherwise.
    Nothing,
    /// As long as handlers take.
    Pace,
    /// As long as handlers take, and a tenth of the whole time in any case. Otherwise it is better to return the record,
    /// which need not wait at its next delivery: if it started too late, its handler would be stopped and its key would
    /// stay locked.
    Tenth,
}

/// Handlers are stopped this long before the invocation deadline, or after 90 % of the time if that is
/// later. If more is to be left after them, they are stopped so long before it, or after 80 % of the time.
const STOP_MARGIN: Duration = Duration::from_millis(750);
/// Settling stops this long before the invocation deadline, or after 95 % of the time if that is later.
const REPLY_MARGIN: Duration = Duration::from_millis(250);
/// Claiming gives up after this long, or after half of the time if that is sooner. The source delivers the
/// record again when the store may be available. A payload that nothing delivers again is claimed for longer.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
/// A claim that is in doubt when claiming gives up is undone within this time. It is extra time,
/// because claiming gives up when its own time is over.
const DOUBT_PATIENCE: Duration = Duration::from_secs(1);
/// A commit is given up this long before settling ends, or after three fourths of the time if that is later.
const COMMIT_MARGIN: Duration = Duration::from_secs(1);
/// Settling gives up after this long, or when the answer is due if that is sooner, and so does claiming what nothing
/// delivers again. A database that fails over is back after one or two minutes.
const SETTLE_PATIENCE: Duration = Duration::from_mins(2);

impl TimeBudget {
    /// The time of an invocation whose handlers leave `time_after` for work after its records.
    pub(super) fn new(begun: Timestamp, end: Timestamp, time_after: Duration) -> Self {
        let total = end.since(begun);
        let margin = STOP_MARGIN.min(total / 10).max(time_after.min(total / 5));
        Self { begun, stop: end.minus(margin), end }
    }

    /// When running handlers are stopped.
    pub(super) const fn stop(&self) -> Timestamp {
        self.stop
    }

    /// When the answer must be given, settled or not.
    pub(super) fn reply(&self) -> Timestamp {
        self.end.minus(REPLY_MARGIN.min(self.total() / 20))
    }

    /// Whether the answer is due.
    pub(super) fn is_reply_due(&self, now: Timestamp) -> bool {
        now >= self.reply()
    }

    /// Until when to try a claim that is made now.
    pub(super) fn claim_deadline(&self, now: Timestamp) -> Timestamp {
        now.plus(CLAIM_PATIENCE.min(self.stop().since(now) / 2))
    }

    /// Until when to try a claim that nothing repeats, if handlers take `pace`: after that no handler could start.
    pub(super) fn last_claim(&self, now: Timestamp, pace: Duration) -> Timestamp {
        self.last_start(pace).min(now.plus(SETTLE_PATIENCE))
    }

    /// Until when to try to undo a claim that is in doubt at `now`.
    pub(super) fn doubt_deadline(&self, now: Timestamp) -> Timestamp {
        now.plus(DOUBT_PATIENCE).min(self.reply())
    }

    /// Until when to try a settlement that begins now.
    pub(super) fn settle_deadline(&self, now: Timestamp) -> Timestamp {
        self.reply().min(now.plus(SETTLE_PATIENCE))
    }

    /// Until when to try a commit that begins now. A fourth of the time is left, or a second if that is less:
    /// if the commit fails, the idempotency record can still say that the process lives.
    pub(super) fn commit_deadline(&self, now: Timestamp) -> Timestamp {
        let last = self.settle_deadline(now);
        last.minus(COMMIT_MARGIN.min(last.since(now) / 4))
    }

    /// Whether a handler may be started now, if handlers take `pace`. The estimate is at most half of the whole time, so that
    /// slow handlers are started, too.
    pub(super) fn allows(&self, reserve: Reserve, now: Timestamp, pace: Duration) -> bool {
        match reserve {
            Reserve::Nothing => true,
            Reserve::Pace => now < self.latest(pace, Duration::ZERO),
            Reserve::Tenth => now < self.last_start(pace),
        }
    }

    /// The first instant at which [`Reserve::Tenth`] is not left.
    fn last_start(&self, pace: Duration) -> Timestamp {
        self.latest(pace, self.total() / 10)
    }

    /// Whether the time for handlers is over.
    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        now >= self.stop()
    }

    /// When it is too late to start, if handlers take `pace`, and at least `floor`.
    fn latest(&self, pace: Duration, floor: Duration) -> Timestamp {
        self.stop().minus(pace.min(self.total() / 2).max(floor))
    }

    const fn total(&self) -> Duration {
        self.end.since(self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// The time of an invocation of so many milliseconds.
    fn of(total: u64) -> TimeBudget {
        TimeBudget::new(at(0), at(total), Duration::ZERO)
    }

    #[test]
    fn margins_shrink_with_short_timeouts() {
        let long = of(60_000);
        assert_eq!((long.stop(), long.reply()), (at(59_250), at(59_750)));
        let short = of(1_000);
        assert_eq!((short.stop(), short.reply()), (at(900), at(950)));
    }

    #[test]
    fn only_handlers_leave_time_for_work_after_them() {
        for (total, time_after, stop) in
            [(60_000, 2_000, 58_000), (60_000, 500, 59_250), (3_000, 2_000, 2_400)]
        {
            let budget = TimeBudget::new(at(0), at(total), Duration::from_millis(time_after));
            assert_eq!((budget.stop(), budget.reply()), (at(stop), of(total).reply()));
        }
    }

    #[test]
    fn a_commit_is_given_up_a_second_before_settling_ends_or_after_three_fourths_of_the_time() {
        let budget = of(60_000);
        assert_eq!(budget.commit_deadline(at(0)), at(58_750));
        assert_eq!(budget.commit_deadline(at(59_350)), at(59_650));
    }

    #[test]
    fn a_learned_pace_cannot_refuse_everything() {
        let pace = Duration::from_secs(500);
        let budget = of(60_000);
        assert!(budget.allows(Reserve::Pace, at(1_000), pace), "capped at half of the time");
        assert!(!budget.allows(Reserve::Pace, at(30_000), pace));
    }

    #[test]
    fn a_handler_starts_while_the_learned_time_is_left() {
        let budget = of(60_000);
        let allows = |ms| budget.allows(Reserve::Pace, at(ms), Duration::from_secs(1));
        assert_eq!([allows(58_249), allows(58_250)], [true, false]);
    }

    #[test]
    fn after_a_wait_the_learned_time_has_to_be_left_and_a_tenth_in_any_case() {
        let budget = of(10_000);
        for (pace, last) in [(0, 8_249), (100, 8_249), (2_000, 7_249)] {
            let allows = |ms| budget.allows(Reserve::Tenth, at(ms), Duration::from_millis(pace));
            assert_eq!([allows(last), allows(last + 1)], [true, false], "{pace} ms");
        }
    }

    #[test]
    fn settling_gives_up_after_two_minutes_or_when_the_answer_is_due() {
        let budget = of(900_000);
        assert_eq!(budget.settle_deadline(at(0)), at(120_000));
        assert_eq!(budget.settle_deadline(at(800_000)), at(899_750));
    }

    #[test]
    fn a_record_has_5_s_at_most_to_claim_and_a_call_until_no_handler_could_start() {
        let pace = Duration::from_secs(1);
        for (total, record, call) in [(9_000, 4_125, 7_250), (60_000, 5_000, 53_250)] {
            let budget = of(total);
            assert_eq!(budget.claim_deadline(at(0)), at(record));
            assert_eq!(budget.last_claim(at(0), pace), at(call));
        }
        assert_eq!(of(900_000).last_claim(at(0), pace), at(120_000));
    }
}
