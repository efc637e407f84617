//! How many requests of a process are on their way at a time. Each needs a connection of its own, so this
//! bounds the connections, too.
//!
//! A program may stop polling calls that have slots: those of a stream, while the body of a loop over it waits. They
//! must not stop other calls, so nobody waits for long while no slot becomes free.

use std::{
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{Either, select},
};
use lambda_idempotency_core::clock::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most requests at a time.
pub(crate) const MOST_REQUESTS: usize = 16;
/// The most claims and reads among them, so that completions do not wait for these. A batch of ten
/// records, the usual size for a queue, needs one round trip even without PartiQL.
const CLAIMS: usize = 10;
/// How long a completion waits for a slot before it is sent without one.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long a claim waits while no slot becomes free. Then one of those that wait is sent without a slot, so an overload
/// adds two requests a second at most.
const STANDSTILL: Duration = Duration::from_millis(500);

/// The requests of a process that may be on their way.
pub(crate) struct Slots {
    all: Semaphore,
    claims: Semaphore,
    /// How many have ended, or were sent without a slot.
    moved: AtomicU64,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It claims keys, or reads them.
    Claim,
    /// It ends or renews claims. It must not wait for others for long.
    Settle,
}

/// A request that may be sent. Dropped, it makes room for another.
pub(crate) struct Slot<'s> {
    moved: &'s AtomicU64,
    _all: Option<SemaphorePermit<'s>>,
    _claims: Option<SemaphorePermit<'s>>,
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for Slots {
    fn default() -> Self {
        let (all, claims) = (Semaphore::new(MOST_REQUESTS), Semaphore::new(CLAIMS));
        Self { all, claims, moved: AtomicU64::new(0) }
    }
}

impl Slots {
    /// Waits until a request may be sent.
    pub(crate) async fn enter(&self, purpose: Purpose, clock: &dyn Clock) -> Slot<'_> {
        // A semaphore has an error only when it is closed, and these never are.
        let (all, claims) = match purpose {
            Purpose::Claim => self.for_claim(clock).await,
            Purpose::Settle => {
                let free = self.all.try_acquire().ok();
                let all = match free {
                    Some(permit) => Some(permit),
                    None => match select(pin!(self.all.acquire()), clock.sleep(PATIENCE)).await {
                        Either::Left((permit, _)) => permit.ok(),
                        Either::Right(((), _)) => None,
                    },
                };
                (all, None)
            }
        };
        Slot { moved: &self.moved, _all: all, _claims: claims }
    }

    async fn for_claim(
        &self,
        clock: &dyn Clock,
    ) -> (Option<SemaphorePermit<'_>>, Option<SemaphorePermit<'_>>) {
        let mut both = pin!(async {
            let claims = self.claims.acquire().await.ok();
            (self.all.acquire().await.ok(), claims)
        });
        if let Some(both) = both.as_mut().now_or_never() {
            return both;
        }
        loop {
            let moved = self.moved.load(Ordering::Relaxed);
            match select(both.as_mut(), clock.sleep(STANDSTILL)).await {
                Either::Left((both, _)) => return both,
                Either::Right(((), _)) => {
                    let next = moved.wrapping_add(1);
                    let order = Ordering::Relaxed;
                    if self.moved.compare_exchange(moved, next, order, order).is_ok() {
                        return (None, None);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use lambda_idempotency_core::clock::SystemClock;

    use super::*;

    fn enter(slots: &Slots, purpose: Purpose) -> Option<Slot<'_>> {
        slots.enter(purpose, &SystemClock).now_or_never()
    }

    #[tokio::test]
    async fn claims_leave_room_for_completions() {
        let slots = Slots::default();
        let claims: Vec<_> = std::iter::from_fn(|| enter(&slots, Purpose::Claim)).collect();
        assert_eq!(claims.len(), CLAIMS);
        let room = MOST_REQUESTS - CLAIMS;
        let settled: Vec<_> = (0..room).map_while(|_| enter(&slots, Purpose::Settle)).collect();
        assert_eq!(settled.len(), room);
        assert!(enter(&slots, Purpose::Settle).is_none());
        drop(claims);
        assert!(enter(&slots, Purpose::Settle).is_some());
    }

    /// Slots whose calls are not polled any more never become free.
    #[tokio::test(start_paused = true)]
    async fn of_claims_that_wait_while_nothing_moves_one_is_sent_each_half_second() {
        let slots = Slots::default();
        let held: Vec<_> = std::iter::from_fn(|| enter(&slots, Purpose::Claim)).collect();
        let began = tokio::time::Instant::now();
        let waited = async |_| {
            let slot = slots.enter(Purpose::Claim, &SystemClock).await;
            (began.elapsed().as_millis(), slot)
        };
        let waited = futures_util::future::join_all((0..3).map(waited)).await;
        let waited: Vec<_> = waited.iter().map(|(waited, _)| *waited).collect();
        assert_eq!(waited, [500, 1000, 1500]);
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn a_completion_is_sent_without_a_slot_in_the_end() {
        let slots = Slots::default();
        let held: Vec<_> =
            (0..MOST_REQUESTS).map_while(|_| enter(&slots, Purpose::Settle)).collect();
        assert_eq!(held.len(), MOST_REQUESTS);
        let began = tokio::time::Instant::now();
        slots.enter(Purpose::Settle, &SystemClock).await;
        assert_eq!(began.elapsed().as_millis(), PATIENCE.as_millis());
    }
}
