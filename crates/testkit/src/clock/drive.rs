//! Simulated time: when all parts sleep, time advances to the next wake-up.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use super::ManualClock;

/// Longer than any test simulates.
const A_YEAR: Duration = Duration::from_secs(366 * 24 * 3600);

impl ManualClock {
    /// Runs `future` in simulated time. Whenever all its parts wait, time advances to the end of
    /// the earliest sleep on this clock.
    ///
    /// Run all concurrent parts inside `future`, with `join!`, `join_all` or `FuturesUnordered`; do
    /// not spawn them. A part that waits for something outside (a socket, another thread) seems to
    /// sleep, so time advances while it waits. Such waiting is safe only while no part sleeps on
    /// the clock.
    ///
    /// # Panics
    /// If a year of simulated time passes: a part of `future` then waits for an event that never
    /// happens, while another part sleeps repeatedly.
    ///
    /// ```
    /// use std::time::Duration;
    /// use lambda_idempotency_core::clock::{Clock, Timestamp};
    /// use lambda_idempotency_testkit::clock::ManualClock;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let clock = ManualClock::new(Timestamp::EPOCH);
    /// let log = std::sync::Mutex::new(Vec::new());
    /// let worker = |name, pause| {
    ///     let (clock, log) = (&clock, &log);
    ///     async move {
    ///         for _ in 0..2 {
    ///             clock.sleep(Duration::from_secs(pause)).await;
    ///             log.lock().unwrap().push((clock.now().as_secs(), name));
    ///         }
    ///     }
    /// };
    /// clock.drive(async { tokio::join!(worker("slow", 5), worker("quick", 2)) }).await;
    /// assert_eq!(*log.lock().unwrap(), [(2, "quick"), (4, "quick"), (5, "slow"), (10, "slow")]);
    /// # }
    /// ```
    pub async fn drive<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(Arc::clone(&signal));
        let mut simulated = Duration::ZERO;
        loop {
            let mut inner = Context::from_waker(&waker);
            let polled = poll_fn(|cx| {
                signal.forward_to(cx.waker());
                Poll::Ready(future.as_mut().poll(&mut inner))
            });
            if let Poll::Ready(output) = polled.await {
                return output;
            }
            // Tokio defers some wake-ups (those of its own `yield_now`) until the task has yielded.
            tokio::task::yield_now().await;
            if signal.take() {
                continue;
            }
            if let Some(duration) = self.until_next_wake() {
                simulated = simulated.saturating_add(duration);
                assert!(
                    simulated < A_YEAR,
                    "a year of simulated time has passed with nothing but sleeping: the future \
                     waits for something that will never come"
                );
                self.advance(duration);
            } else {
                poll_fn(|cx| {
                    signal.forward_to(cx.waker());
                    if signal.take() { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
            }
        }
    }
}

/// Records that the future was woken, and wakes its task.
#[derive(Default)]
struct Signal {
    woken: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Signal {
    fn forward_to(&self, task: &Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    }

    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::{Either, join_all, select};
    use lambda_idempotency_core::clock::{Clock, Timestamp};

    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[tokio::test]
    async fn the_clock_does_not_advance_while_a_task_can_run() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let work = Box::pin(async {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
        });
        let deadline = clock.sleep(secs(1));
        let first = clock.drive(select(work, deadline)).await;
        assert!(matches!(first, Either::Left(_)), "the deadline came before the work was done");
        assert_eq!(clock.now(), Timestamp::EPOCH);
    }

    #[tokio::test]
    async fn sleeps_end_in_order_at_their_own_time() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let sleeps = [30, 10, 20].map(|after| {
            let clock = &clock;
            async move {
                clock.sleep(secs(after)).await;
                clock.now().as_secs()
            }
        });
        assert_eq!(clock.drive(join_all(sleeps)).await, [30, 10, 20]);
    }

    #[tokio::test]
    async fn driving_waits_for_events_from_outside() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let (send, receive) = ends_when_told();
        let outside = async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            send();
        };
        tokio::join!(clock.drive(receive), outside);
    }

    #[tokio::test]
    #[should_panic(expected = "a year of simulated time")]
    async fn waiting_forever_is_detected() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let heartbeat = async {
            loop {
                clock.sleep(secs(3600)).await;
            }
        };
        clock.drive(async { tokio::join!(std::future::pending::<()>(), heartbeat) }).await;
    }

    /// A closure that lets the future end.
    fn ends_when_told() -> (impl FnOnce(), impl Future<Output = ()>) {
        let signal = Arc::new(Signal::default());
        let other = Arc::clone(&signal);
        let future = poll_fn(move |cx| {
            other.forward_to(cx.waker());
            if other.take() { Poll::Ready(()) } else { Poll::Pending }
        });
        (move || Waker::from(signal).wake(), future)
    }
}
