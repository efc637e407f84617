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

use super::time;

/// Differences up to this are of the rounding of `Date` and of the way of the answer.
const TOLERATED: i64 = 2000;

/// The clock of the service that answered last, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) struct ServerClock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Whose clock it is.
    of: &'static str,
    /// What has to be added to this machine's time, in milliseconds.
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
            eprintln!(
                "note: the clock of this machine is {} {way} {}'s, which counts here",
                time::rough(by),
                self.0.of
            );
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
