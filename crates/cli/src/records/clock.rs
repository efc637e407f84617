//! The time by the table's clock.
//!
//! Whether a lease stands is decided by the time. A worker in Lambda has a clock that is right; a laptop that woke up
//! from sleep may not, and would take a live claim for one that has lapsed. So the time of this machine is corrected
//! by the `Date` of DynamoDB's answers, or by the time of a PostgreSQL or Redis server, if the two differ by more than
//! the time of a request explains.

use std::{
    sync::{
        Arc, Once,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use aws_sdk_dynamodb::{
    config::{
        ConfigBag, Intercept, RuntimeComponents,
        interceptors::BeforeDeserializationInterceptorContextRef,
    },
    error::BoxError,
    primitives::{DateTime, DateTimeFormat},
};
use lambda_idempotency_core::clock::{Clock as _, SystemClock, Timestamp};

use crate::terminal;

/// Differences up to this are of the rounding of `Date` and of the way of the answer.
const TOLERATED: i64 = 2000;

/// The clock of the service that answered last, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct ServerClock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whose clock it is.
    of: &'static str,
    /// The difference to this machine's time, in milliseconds.
    ahead: AtomicI64,
    warned: Once,
}

impl ServerClock {
    /// The clock of this service, which is not known yet.
    pub(crate) fn of(of: &'static str) -> Self {
        Self(Arc::new(Inner { of, ahead: AtomicI64::new(0), warned: Once::new() }))
    }

    /// The time now. Says once if this machine's clock differs.
    pub(crate) fn now(&self) -> Timestamp {
        let ahead = self.0.ahead.load(Ordering::Relaxed);
        let by = Duration::from_millis(ahead.unsigned_abs());
        if ahead == 0 {
            return SystemClock.now();
        }
        self.0.warned.call_once(|| {
            let way = if ahead > 0 { "behind" } else { "ahead of" };
            terminal::tell(format_args!(
                "note: the clock of this machine is {} {way} {}'s, which counts here",
                rough(by),
                self.0.of
            ));
        });
        if ahead > 0 { SystemClock.now().plus(by) } else { SystemClock.now().minus(by) }
    }

    fn learn(&self, date: &str) {
        let Ok(date) = DateTime::from_str(date, DateTimeFormat::HttpDate) else { return };
        let Ok(theirs) = date.to_millis() else { return };
        // `Date` has whole seconds: on average the answer is half a second later.
        self.learn_millis(theirs.saturating_add(500));
    }

    pub(crate) fn learn_time(&self, theirs: Timestamp) {
        self.learn_millis(i64::try_from(theirs.as_millis()).unwrap_or(i64::MAX));
    }

    fn learn_millis(&self, theirs: i64) {
        let ours = i64::try_from(SystemClock.now().as_millis()).unwrap_or(i64::MAX);
        let ahead = theirs.saturating_sub(ours);
        let ahead = if ahead.saturating_abs() > TOLERATED { ahead } else { 0 };
        self.0.ahead.store(ahead, Ordering::Relaxed);
    }
}

impl Intercept for ServerClock {
    fn name(&self) -> &'static str {
        "ServerClock"
    }

    fn read_before_deserialization(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if let Some(date) = context.response().headers().get("date") {
            self.learn(date);
        }
        Ok(())
    }
}

/// `2026-11-22T09:30:00Z`.
pub(crate) fn instant(at: Timestamp) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    let text = DateTime::from_millis(millis).fmt(DateTimeFormat::DateTime);
    text.unwrap_or_else(|_| format!("{millis} ms since the epoch"))
}

/// The largest whole unit: `45s`, `12m`, `3h`, `9d`.
pub(crate) fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `5m ago`, or `in 5m`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("in {}", rough(at.since(now)))
    } else {
        format!("{} ago", rough(now.since(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_the_largest_whole_unit() {
        assert_eq!(instant(Timestamp::from_secs(1_700_000_000)), "2023-11-14T22:13:20Z");
        for (seconds, text) in [(119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")] {
            assert_eq!(rough(Duration::from_secs(seconds)), text);
        }
        let at = Timestamp::from_secs;
        assert_eq!(relative(at(100), at(400)), "5m ago");
        assert_eq!(relative(at(400), at(100)), "in 5m");
    }
}
