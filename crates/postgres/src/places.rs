//! How many connections are in use at a time, and who waits for one.
//!
//! A completion, or a renewal, must not wait for claims and reads: its lease ends meanwhile. So a part of the connections is
//! kept for these, and they go first. A completion with effects may wait for a locked row for long. So it does not get
//! those, but goes before claims and reads.
//!
//! A program may stop polling calls that have connections: those of a stream, while the body of a loop over it waits.
//! They must not stop other calls, so nobody waits for long while no connection comes back.

use std::{
    pin::pin,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{Either, select},
};
use lambda_idempotency_core::clock::Clock;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How long a call waits while no connection comes back. Then one of those that wait opens another connection, which is
/// closed after it.
const STANDSTILL: Duration = Duration::from_millis(500);
/// As long as that, for a call that settles claims.
const STANDSTILL_OF_SETTLING: Duration = Duration::from_millis(250);
/// One of so many connections is kept for calls that settle claims.
const KEPT_OF: usize = 6;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Claims, reads, and whatever else does not hurry.
    Claim,
    /// A record and effects. These may take long.
    Commit,
    /// Completions, renewals, and other writes that are no claims.
    Settle,
}

/// Permission to use connections.
pub(crate) struct Places {
    all: Queue,
    /// Those that are not kept for calls that settle claims.
    unkept: Queue,
    /// As many. The claims that have none do not wait in the queues above, so these stay short.
    claims: Semaphore,
}

/// Who waits for a number of connections: some go first.
struct Queue {
    permits: Semaphore,
    /// How many wait of those that go first.
    first: AtomicUsize,
    /// How many connections have come back, or were opened beyond the permits.
    moved: AtomicU64,
}

/// Permission to use a connection. Dropped, it makes room for another.
pub(crate) struct Place<'p> {
    places: &'p Places,
    purpose: Purpose,
    /// Without them, the connection is beyond those that are kept open.
    permits: Option<Permits<'p>>,
}

/// A connection of all, one of those that are not kept, and one of those for claims.
type Permits<'p> = [Option<SemaphorePermit<'p>>; 3];

/// How many of so many connections are for this purpose.
pub(crate) const fn most_of(purpose: Purpose, max_connections: usize) -> usize {
    match purpose {
        Purpose::Settle => max_connections,
        // Of a single connection nothing can be kept.
        Purpose::Claim | Purpose::Commit if max_connections < 2 => max_connections,
        Purpose::Claim | Purpose::Commit => {
            max_connections.saturating_sub(max_connections.div_ceil(KEPT_OF))
        }
    }
}

impl Places {
    pub(crate) fn new(max_connections: usize) -> Self {
        let most = |purpose| Semaphore::new(most_of(purpose, max_connections));
        Self {
            all: Queue::of(most(Purpose::Settle)),
            unkept: Queue::of(most(Purpose::Commit)),
            claims: most(Purpose::Claim),
        }
    }

    /// Waits while all connections for this purpose are in use, and come back.
    pub(crate) async fn enter(&self, purpose: Purpose, clock: &dyn Clock) -> Place<'_> {
        let mut permits = pin!(self.permits(purpose));
        let permits = match permits.as_mut().now_or_never() {
            Some(permits) => Some(permits),
            None => match select(permits, pin!(self.standstill(purpose, clock))).await {
                Either::Left((permits, _)) => Some(permits),
                Either::Right(((), _)) => None,
            },
        };
        Place { places: self, purpose, permits }
    }

    // A semaphore has an error only when it is closed, and these never are.
    async fn permits(&self, purpose: Purpose) -> Permits<'_> {
        match purpose {
            Purpose::Settle => [self.all.first().await, None, None],
            Purpose::Commit => {
                let unkept = self.unkept.first().await;
                [self.all.after_these().await, unkept, None]
            }
            Purpose::Claim => {
                let claim = self.claims.acquire().await.ok();
                let unkept = self.unkept.after_these().await;
                [self.all.after_these().await, unkept, claim]
            }
        }
    }

    /// Returns when no connection has come back for so long that the call goes on without a place. Of those that wait, one
    /// does so at a time: an overload adds two connections a second for claims and commits, and four for calls that settle.
    async fn standstill(&self, purpose: Purpose, clock: &dyn Clock) {
        let (queue, patience) = match purpose {
            Purpose::Settle => (&self.all, STANDSTILL_OF_SETTLING),
            Purpose::Claim | Purpose::Commit => (&self.unkept, STANDSTILL),
        };
        let mut has_let_pass = purpose != Purpose::Claim;
        loop {
            let moved = queue.moved.load(Ordering::Relaxed);
            clock.sleep(patience).await;
            // Those that go first do so here, too. Once: one of them may not be polled any more.
            if !has_let_pass && queue.first.load(Ordering::Relaxed) > 0 {
                has_let_pass = true;
                continue;
            }
            let (next, order) = (moved.wrapping_add(1), Ordering::Relaxed);
            if queue.moved.compare_exchange(moved, next, order, order).is_ok() {
                return;
            }
        }
    }
}

impl Queue {
    const fn of(permits: Semaphore) -> Self {
        Self { permits, first: AtomicUsize::new(0), moved: AtomicU64::new(0) }
    }

    /// Waits for a permit before those that wait [after these](Self::after_these).
    async fn first(&self) -> Option<SemaphorePermit<'_>> {
        let _waiting = Waiting::new(&self.first);
        self.permits.acquire().await.ok()
    }

    /// Waits for a permit, and lets those pass once that go first and wait then. One of them may not be polled any more.
    async fn after_these(&self) -> Option<SemaphorePermit<'_>> {
        let permit = self.permits.acquire().await.ok();
        if self.first.load(Ordering::Relaxed) == 0 {
            return permit;
        }
        drop(permit);
        self.permits.acquire().await.ok()
    }
}

/// One that goes first, and waits.
struct Waiting<'q>(&'q AtomicUsize);

impl<'q> Waiting<'q> {
    fn new(first: &'q AtomicUsize) -> Self {
        first.fetch_add(1, Ordering::Relaxed);
        Self(first)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Place<'_> {
    /// Whether the connection is one of those that are kept open.
    pub(crate) const fn is_kept_open(&self) -> bool {
        self.permits.is_some()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.permits.is_none() {
            return; // its connection is closed, and nobody who waits gets one
        }
        self.places.all.moved.fetch_add(1, Ordering::Relaxed);
        if self.purpose != Purpose::Settle {
            self.places.unkept.moved.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
