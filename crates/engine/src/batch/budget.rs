//! How much of the invocation's time is left, and for what.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use lambda_idempotency_core::clock::Timestamp;

/// How long the handlers of an operation take, learned from their calls. Shared by all invocations.
#[derive(Debug, Default)]
pub struct Pace(AtomicU64);

impl Pace {
    /// Follows slow calls at once and fast ones slowly: a start too many costs more than one too
    /// few.
    pub(super) fn learn(&self, took: Duration) {
        // 0 means that nothing is known.
        let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        let known = self.0.load(Ordering::Relaxed);
        let next = took.max(known.saturating_sub(known / 8).saturating_add(took / 8));
        self.0.store(next, Ordering::Relaxed);
    }

    fn estimate(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// The ends that an invocation has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    begun: Timestamp,
    end: Option<Timestamp>,
}

/// Handlers are stopped this long before the end, or after 90 % of the time if that is later.
const STOP_MARGIN: Duration = Duration::from_millis(750);
/// Settling ends this long before the end, or after 95 % of the time if that is later.
const REPLY_MARGIN: Duration = Duration::from_millis(250);
/// Claiming gives up after this long, or after half of the time if that is sooner: the source can
/// try again when the store is back.
const CLAIM_PATIENCE: Duration = Duration::from_secs(5);
/// A claim that is in doubt when claiming gives up is put back within this time: who gave up because
/// no time was left would else never try.
const DOUBT_PATIENCE: Duration = Duration::from_secs(1);
/// Settling gives up after this long if no deadline is known.
const SETTLE_PATIENCE: Duration = Duration::from_secs(30);

impl Budget {
    pub(super) const fn new(begun: Timestamp, end: Option<Timestamp>) -> Self {
        Self { begun, end }
    }

    /// When the invocation ends.
    pub(super) const fn end(&self) -> Option<Timestamp> {
        self.end
    }

    /// When running handlers are stopped.
    pub(super) fn stop(&self) -> Option<Timestamp> {
        self.end.map(|end| end.minus(STOP_MARGIN.min(self.total(end) / 10)))
    }

    /// When the answer must be given, settled or not.
    pub(super) fn reply(&self) -> Option<Timestamp> {
        self.end.map(|end| end.minus(REPLY_MARGIN.min(self.total(end) / 20)))
    }

    pub(super) fn claim_deadline(&self, now: Timestamp) -> Timestamp {
        let patience =
            self.stop().map_or(CLAIM_PATIENCE, |stop| CLAIM_PATIENCE.min(stop.since(now) / 2));
        now.plus(patience)
    }

    /// When putting back what was left in doubt at `claimed` gives up.
    pub(super) fn doubt_deadline(&self, claimed: Timestamp) -> Timestamp {
        let last = claimed.plus(DOUBT_PATIENCE);
        self.reply().map_or(last, |reply| last.min(reply))
    }

    pub(super) fn settle_deadline(&self, now: Timestamp) -> Timestamp {
        self.reply().unwrap_or_else(|| now.plus(SETTLE_PATIENCE))
    }

    /// Whether another handler can be started and be expected to finish. The estimate is capped at
    /// half of the whole time, so that slow handlers are not refused for ever.
    pub(super) fn allows(&self, now: Timestamp, pace: &Pace) -> bool {
        match (self.stop(), self.end) {
            (Some(stop), Some(end)) => now.plus(pace.estimate().min(self.total(end) / 2)) < stop,
            _ => true,
        }
    }

    /// The same for one that has waited for another worker, and can be told to come again. Where no
    /// pace was learned, a tenth of the whole time has to be left.
    pub(super) fn allows_late(&self, now: Timestamp, pace: &Pace) -> bool {
        let least = match self.end {
            Some(end) if pace.estimate().is_zero() => self.total(end) / 10,
            _ => Duration::ZERO,
        };
        self.allows(now.plus(least), pace)
    }

    pub(super) fn is_over(&self, now: Timestamp) -> bool {
        self.stop().is_some_and(|stop| now >= stop)
    }

    const fn total(&self, end: Timestamp) -> Duration {
        end.since(self.begun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn margins_shrink_with_short_timeouts() {
        let long = Budget::new(at(0), Some(at(60_000)));
        assert_eq!((long.stop(), long.reply()), (Some(at(59_250)), Some(at(59_750))));
        let short = Budget::new(at(0), Some(at(1_000)));
        assert_eq!((short.stop(), short.reply()), (Some(at(900)), Some(at(950))));
    }

    #[test]
    fn a_learned_pace_cannot_refuse_everything() {
        let pace = Pace::default();
        pace.learn(Duration::from_secs(500));
        let budget = Budget::new(at(0), Some(at(60_000)));
        assert!(budget.allows(at(1_000), &pace), "capped at half of the time");
        assert!(!budget.allows(at(30_000), &pace));
    }

    #[test]
    fn after_a_wait_the_learned_time_has_to_be_left_or_a_tenth() {
        let (pace, budget) = (Pace::default(), Budget::new(at(0), Some(at(10_000))));
        let allows = |ms| budget.allows_late(at(ms), &pace);
        assert_eq!([allows(8_249), allows(8_250)], [true, false]);
        pace.learn(Duration::from_millis(100));
        assert_eq!([allows(9_149), allows(9_150)], [true, false]);
    }

    #[test]
    fn pace_rises_at_once_and_falls_slowly() {
        let pace = Pace::default();
        pace.learn(Duration::from_millis(800));
        pace.learn(Duration::ZERO);
        assert_eq!(pace.estimate(), Duration::from_millis(700));
    }

    #[test]
    fn without_a_deadline_everything_may_start() {
        let budget = Budget::new(at(0), None);
        assert!(budget.allows(at(u64::MAX), &Pace::default()) && !budget.is_over(at(u64::MAX)));
    }
}
