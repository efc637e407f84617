//! How many requests of a process are on their way at a time. Each needs a connection of its own, so this
//! bounds the connections, too.
//!
//! A program may stop polling calls that have slots: those of a stream, while the body of a loop over it waits. They
//! must not stop other calls, so nobody waits for long while no slot becomes free.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{Either, select},
};
use lambda_idempotency_core::clock::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::turns::turns;

/// The most requests at a time.
///
/// There can be a few more connections: a request that begins while the connection of another is on its way back to
/// the pool opens one, and the next requests use it.
pub(crate) const MOST_REQUESTS: usize = 12;
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
    /// How many completions wait.
    settling: AtomicUsize,
    /// How many slots have come back, and requests were sent without one.
    moved: AtomicU64,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It claims keys, or reads them.
    Claim,
    /// It ends or renews claims, or keeps what a step returned. It must not wait for others for long.
    Settle,
}

/// A request that may be sent. Dropped, it makes room for another.
pub(crate) struct Slot<'s> {
    moved: &'s AtomicU64,
    all: Option<SemaphorePermit<'s>>,
    _claims: Option<SemaphorePermit<'s>>,
}

/// A completion that waits.
struct Waiting<'s>(&'s AtomicUsize);

impl<'s> Waiting<'s> {
    fn new(settling: &'s AtomicUsize) -> Self {
        settling.fetch_add(1, Ordering::Relaxed);
        Self(settling)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A slot of all, and one of those for claims.
type Permits<'s> = (Option<SemaphorePermit<'s>>, Option<SemaphorePermit<'s>>);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        // Of one that was sent without a slot nobody who waits gets any.
        if self.all.is_some() {
            self.moved.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Default for Slots {
    fn default() -> Self {
        let (all, claims) = (Semaphore::new(MOST_REQUESTS), Semaphore::new(CLAIMS));
        Self { all, claims, settling: AtomicUsize::new(0), moved: AtomicU64::new(0) }
    }
}

impl Slots {
    /// Waits until a request may be sent.
    pub(crate) async fn enter(&self, purpose: Purpose, clock: &dyn Clock) -> Slot<'_> {
        // A semaphore has an error only when it is closed, and these never are.
        let mut permits = pin!(async {
            if purpose == Purpose::Settle {
                let _waiting = Waiting::new(&self.settling);
                return (self.all.acquire().await.ok(), None);
            }
            let claims = self.claims.acquire().await.ok();
            let mut all = self.all.acquire().await.ok();
            // Completions that wait go first. Once: one of them may not be polled any more.
            if self.settling.load(Ordering::Relaxed) > 0 {
                drop(all);
                all = self.all.acquire().await.ok();
            }
            (all, claims)
        });
        let (all, claims) = match permits.as_mut().now_or_never() {
            Some(permits) => permits,
            None => {
                let permits = self.wait(permits, purpose, clock).await;
                // The connection of the request that has just ended comes back to its pool in a task of its own. Before
                // that, another would be opened. A completion does not wait for that, nor for what runs meanwhile.
                if purpose == Purpose::Claim {
                    turns(2).await;
                }
                permits
            }
        };
        Slot { moved: &self.moved, all, _claims: claims }
    }

    async fn wait<'s>(
        &self,
        mut permits: Pin<&mut impl Future<Output = Permits<'s>>>,
        purpose: Purpose,
        clock: &dyn Clock,
    ) -> Permits<'s> {
        if purpose == Purpose::Settle {
            return match select(permits, clock.sleep(PATIENCE)).await {
                Either::Left((permits, _)) => permits,
                Either::Right(((), _)) => (None, None),
            };
        }
        loop {
            let moved = self.moved.load(Ordering::Relaxed);
            match select(permits.as_mut(), clock.sleep(STANDSTILL)).await {
                Either::Left((permits, _)) => return permits,
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

    #[tokio::test]
    async fn completions_that_wait_go_before_claims_that_waited_longer() {
        let slots = Slots::default();
        let mut held: Vec<_> =
            (0..MOST_REQUESTS).map_while(|_| enter(&slots, Purpose::Settle)).collect();
        let claim = slots.enter(Purpose::Claim, &SystemClock);
        let completion = slots.enter(Purpose::Settle, &SystemClock);
        let (mut claim, mut completion) = (pin!(claim), pin!(completion));
        assert!(claim.as_mut().now_or_never().is_none());
        assert!(completion.as_mut().now_or_never().is_none());
        held.pop();
        let first = select(claim.as_mut(), completion.as_mut()).await;
        assert!(matches!(first, Either::Right(_)), "the claim was first");
        drop(first);
        held.pop();
        assert!(claim.now_or_never().is_none(), "it waits for its turn");
    }

    #[tokio::test]
    async fn a_completion_is_sent_as_soon_as_there_is_room() {
        let slots = Slots::default();
        let mut held: Vec<_> =
            (0..MOST_REQUESTS).map_while(|_| enter(&slots, Purpose::Settle)).collect();
        let mut completion = pin!(slots.enter(Purpose::Settle, &SystemClock));
        assert!(completion.as_mut().now_or_never().is_none());
        held.pop();
        assert!(completion.now_or_never().is_some(), "it waits for no other task");
    }

    /// As the calls of a stream, while the body of the loop over it makes a claim.
    #[tokio::test]
    async fn a_completion_that_is_not_polled_any_more_delays_a_claim_once() {
        let slots = Slots::default();
        let mut held: Vec<_> =
            (0..MOST_REQUESTS).map_while(|_| enter(&slots, Purpose::Settle)).collect();
        let mut completion = pin!(slots.enter(Purpose::Settle, &SystemClock));
        assert!(completion.as_mut().now_or_never().is_none());
        held.truncate(MOST_REQUESTS - 2);
        slots.enter(Purpose::Claim, &SystemClock).await;
    }

    /// Slots whose calls are not polled any more never become free.
    #[tokio::test(start_paused = true)]
    async fn of_claims_that_wait_while_nothing_moves_one_is_sent_each_half_second() {
        let slots = Slots::default();
        let held: Vec<_> = std::iter::from_fn(|| enter(&slots, Purpose::Claim)).collect();
        let began = tokio::time::Instant::now();
        let waited = async |_| {
            let _slot = slots.enter(Purpose::Claim, &SystemClock).await;
            let waited = began.elapsed().as_millis();
            SystemClock.sleep(Duration::from_millis(10)).await;
            waited
        };
        let waited = futures_util::future::join_all((0..3).map(waited)).await;
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
