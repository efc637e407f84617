//! Clocks for tests: one that the test moves, and one that is skewed.
//!
//! [`ManualClock`] shows the same time until a test moves it. As on a real machine, time that
//! passes differs from an adjustment of the clock:
//!
//! * [`advance`](ManualClock::advance): time passes. Sleeps end.
//! * [`set`](ManualClock::set) and [`step_back`](ManualClock::step_back): the clock is adjusted.
//!   [`now`](Clock::now) jumps, and sleeps last as long as before.
//!
//! [`ManualClock::drive`] moves it automatically: whenever all parts sleep, time jumps to the next
//! wake-up. A test of an hour takes a millisecond, and runs the same way every time:
//!
//! ```
//! use std::time::Duration;
//! use lambda_idempotency_core::clock::{Clock, Timestamp};
//! use lambda_idempotency_testkit::clock::ManualClock;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let clock = ManualClock::new(Timestamp::from_secs(1000));
//! let lunch = clock.drive(async {
//!     clock.sleep(Duration::from_secs(3600)).await;
//!     "lunch"
//! });
//! assert_eq!(lunch.await, "lunch");
//! assert_eq!(clock.now(), Timestamp::from_secs(4600));
//! # }
//! ```

mod drive;
mod skewed;

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};

pub use skewed::SkewedClock;

/// A clock that moves only when the test moves it. Clones share the clock.
#[derive(Clone)]
pub struct ManualClock {
    state: Arc<Mutex<State>>,
}

struct State {
    /// What the clock showed when it was last set, and how much time had passed then.
    set_to: Timestamp,
    set_at: Duration,
    /// How much time has passed in all.
    passed: Duration,
    /// The sleeps, ordered by their end (in `passed`), then by their start.
    sleepers: BTreeMap<(Duration, u64), Option<Waker>>,
    next_sleeper: u64,
}

impl State {
    fn now(&self) -> Timestamp {
        self.set_to.plus(self.passed.saturating_sub(self.set_at))
    }

    fn set(&mut self, to: Timestamp) {
        self.set_to = to;
        self.set_at = self.passed;
    }
}

impl ManualClock {
    /// A clock that shows `now` until it is moved.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let state = State {
            set_to: now,
            set_at: Duration::ZERO,
            passed: Duration::ZERO,
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Lets `duration` pass in one step: all sleeps that end within it wake at its end. To stop at
    /// each wake-up, use [`drive`](Self::drive).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use lambda_idempotency_core::clock::{Clock, Timestamp};
    /// # use lambda_idempotency_testkit::clock::ManualClock;
    /// let clock = ManualClock::new(Timestamp::from_secs(10));
    /// clock.advance(Duration::from_secs(5));
    /// assert_eq!(clock.now(), Timestamp::from_secs(15));
    /// ```
    pub fn advance(&self, duration: Duration) {
        let mut state = self.lock();
        state.passed = state.passed.saturating_add(duration);
        let passed = state.passed;
        let mut wakers = Vec::new();
        for ((due, _), waker) in &mut state.sleepers {
            if *due > passed {
                break;
            }
            wakers.extend(waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Adjusts the clock to show `now`. No time passes, so no sleep ends.
    pub fn set(&self, now: Timestamp) {
        self.lock().set(now);
    }

    /// Adjusts the clock to show `duration` less, as a time server may do. No time passes.
    pub fn step_back(&self, duration: Duration) {
        let mut state = self.lock();
        let now = state.now().minus(duration);
        state.set(now);
    }

    /// The number of sleeps in progress.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// The time at which the next sleep ends, if the clock is not adjusted before; `None` without
    /// sleeps.
    #[must_use]
    pub fn next_wake(&self) -> Option<Timestamp> {
        let state = self.lock();
        let (due, _) = state.sleepers.keys().next()?;
        Some(state.now().plus(due.saturating_sub(state.passed)))
    }

    /// The time until the next sleep ends. A sleep that has ended but is not polled (in a frozen
    /// process) does not count.
    fn until_next_wake(&self) -> Option<Duration> {
        let state = self.lock();
        let (due, _) = state.sleepers.keys().find(|(due, _)| *due > state.passed)?;
        Some(due.saturating_sub(state.passed))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.lock();
        let id = (state.passed.saturating_add(duration), state.next_sleeper);
        state.next_sleeper += 1;
        state.sleepers.insert(id, None);
        Box::pin(Sleep { clock: self.clone(), id })
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("ManualClock")
            .field("now", &state.now())
            .field("sleepers", &state.sleepers.len())
            .finish()
    }
}

/// One sleep, which counts from its creation until it has ended or is dropped.
struct Sleep {
    clock: ManualClock,
    id: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.lock();
        if state.passed >= self.id.0 {
            state.sleepers.remove(&self.id);
            return Poll::Ready(());
        }
        state.sleepers.insert(self.id, Some(cx.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().sleepers.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[tokio::test]
    async fn a_sleep_ends_when_its_time_has_passed_and_not_before() {
        let clock = ManualClock::new(Timestamp::from_secs(100));
        let mut sleep = clock.sleep(secs(10));
        assert_eq!(clock.next_wake(), Some(Timestamp::from_secs(110)));
        clock.advance(Duration::from_millis(9_999));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.advance(Duration::from_millis(1));
        assert!(sleep.as_mut().now_or_never().is_some());
        assert_eq!((clock.sleepers(), clock.next_wake()), (0, None));
    }

    #[tokio::test]
    async fn adjusting_the_wall_clock_does_not_change_sleeps() {
        let clock = ManualClock::new(Timestamp::from_secs(100));
        let mut sleep = clock.sleep(secs(10));
        clock.set(Timestamp::from_secs(1000));
        assert!(sleep.as_mut().now_or_never().is_none());
        clock.step_back(secs(950));
        assert_eq!(clock.now(), Timestamp::from_secs(50));
        clock.advance(secs(10));
        assert!(sleep.now_or_never().is_some());
        assert_eq!(clock.now(), Timestamp::from_secs(60));
    }

    #[tokio::test]
    async fn a_dropped_sleep_is_not_counted() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let sleep = clock.sleep(secs(1));
        assert_eq!(clock.sleepers(), 1);
        drop(sleep);
        assert_eq!(clock.sleepers(), 0);
    }

    #[tokio::test]
    async fn advancing_wakes_a_task_that_waits() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let sleep = clock.sleep(secs(5));
        let advance = async { clock.advance(secs(5)) };
        tokio::join!(sleep, advance);
        assert_eq!(clock.now(), Timestamp::from_secs(5));
    }
}
