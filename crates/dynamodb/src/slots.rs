//! How many requests of a process are on their way at a time. Each needs a connection of its own, so this
//! bounds the connections, too.

use std::{pin::pin, time::Duration};

use futures_util::future::{Either, select};
use lambda_idempotency_core::clock::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The most requests at a time.
pub(crate) const MOST_REQUESTS: usize = 16;
/// The most claims and reads among them, so that completions do not wait for these. A batch of ten
/// records, the usual size for a queue, needs one round trip even without PartiQL.
const CLAIMS: usize = 10;
/// How long a completion waits for a slot before it is sent without one.
const PATIENCE: Duration = Duration::from_millis(250);

/// The requests of a process that may be on their way.
pub(crate) struct Slots {
    all: Semaphore,
    claims: Semaphore,
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
    _all: Option<SemaphorePermit<'s>>,
    _claims: Option<SemaphorePermit<'s>>,
}

impl Default for Slots {
    fn default() -> Self {
        Self { all: Semaphore::new(MOST_REQUESTS), claims: Semaphore::new(CLAIMS) }
    }
}

impl Slots {
    /// Waits until a request may be sent.
    pub(crate) async fn enter(&self, purpose: Purpose, clock: &dyn Clock) -> Slot<'_> {
        // A semaphore has an error only when it is closed, and these never are.
        match purpose {
            Purpose::Claim => {
                let claims = self.claims.acquire().await.ok();
                Slot { _claims: claims, _all: self.all.acquire().await.ok() }
            }
            Purpose::Settle => {
                let free = self.all.try_acquire().ok();
                let all = match free {
                    Some(permit) => Some(permit),
                    None => match select(pin!(self.all.acquire()), clock.sleep(PATIENCE)).await {
                        Either::Left((permit, _)) => permit.ok(),
                        Either::Right(((), _)) => None,
                    },
                };
                Slot { _all: all, _claims: None }
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
