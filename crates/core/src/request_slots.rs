//! How many requests a process has on their way to a store at a time, for crates that implement a
//! [`Store`](crate::store::Store).
//!
//! Each request needs a connection of its own, so [`RequestSlots`] bound the connections, too:
//!
//! 1. A request needs a slot. While none is free, its call waits, whatever the request is for.
//! 2. One slot of six is kept for settlements. A lease ends while its renewal or its completion waits.
//! 3. A free slot goes to the most urgent [`Purpose`], and of its calls to the one that has waited for longest.
//! 4. A slot is held for as long as its request may take. A program may stop polling calls: those of a stream, while the
//!    body of a loop over it waits. A slot that is held for longer belongs to such a call. It goes to the call that finds this
//!    out, which certainly is polled, unless a more urgent one waits that was polled lately.
//! 5. A call that got no slot in time says nothing of the server: [`RequestSlots::blame`] tells whether it is an outage.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//!
//! use lambda_idempotency_core::{
//!     clock::SystemClock,
//!     request_slots::{Purpose, RequestSlots},
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let slots = RequestSlots::new(12, Arc::new(SystemClock));
//! let slot = slots.enter(Purpose::Claim, || Duration::from_secs(1)).await;
//! assert_eq!(slots.taken(), 1); // the request is sent here, and has a time limit of a second
//! drop(slot);
//! # }
//! ```

use std::{
    collections::BTreeMap,
    fmt,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use crate::{
    clock::{BoxFuture, Clock, Timestamp},
    store::StoreErrorKind,
};

/// One of so many slots is kept for settlements.
const KEPT_OF: usize = 6;
/// How long a call may take to use a slot that was given to it while it waited.
const HAND_OVER: Duration = Duration::from_millis(100);
/// How long a slot may be held beyond its time. A process without a processor for a moment polls its calls late.
const GRACE: Duration = Duration::from_millis(100);

/// A call that waits looks for overdue slots at least this often. One may be given to a call that is not polled.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The purpose of a request. The first is the most urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// It ends claims, renews them, or keeps what a step returned; or it looks up what became of such a write.
    Settle,
    /// It goes before claims, and does not get the slots that are kept for settlements: it completes a key together with
    /// effects that may wait, for example for a locked row, or finds out whether a claim was applied.
    Hurry,
    /// It claims keys, or does whatever else does not hurry.
    Claim,
}

/// The requests of a process that may be on their way to a store.
pub struct RequestSlots {
    slots: usize,
    clock: Arc<dyn Clock>,
    state: Mutex<SlotsState>,
}

#[derive(Default)]
struct SlotsState {
    /// The last request that ended had no answer.
    is_silent: bool,
    /// How many calls have come so far: the number of the next.
    calls: u64,
    taken: Vec<Taken>,
    /// The calls that wait, the next one first.
    waiting: BTreeMap<(Purpose, u64), Waiting>,
}

struct Waiting {
    waker: Waker,
    /// When it was polled for the last time.
    polled: Timestamp,
}

struct Taken {
    call: u64,
    purpose: Purpose,
    until: Timestamp,
}

/// A request that may be sent. Dropped, it makes room for another.
pub struct Slot<'s> {
    all: &'s RequestSlots,
    purpose: Purpose,
    call: u64,
}

impl RequestSlots {
    /// So many slots.
    #[must_use]
    pub fn new(slots: usize, clock: Arc<dyn Clock>) -> Self {
        Self { slots, clock, state: Mutex::default() }
    }

    /// How many of so many slots requests for this purpose may have at a time.
    #[must_use]
    pub const fn most_of(slots: usize, purpose: Purpose) -> usize {
        match purpose {
            Purpose::Settle => slots,
            // Of a single slot nothing can be kept.
            Purpose::Hurry | Purpose::Claim if slots < 2 => slots,
            Purpose::Hurry | Purpose::Claim => slots.saturating_sub(slots.div_ceil(KEPT_OF)),
        }
    }

    /// How many slots are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lock().taken.len()
    }

    /// Says whether the server answered a request. Nothing is known of one whose call is not polled any more.
    pub fn heard(&self, is_answered: bool) {
        self.lock().is_silent = !is_answered;
    }

    /// Why a call failed that got no slot in time, or got it too late for its request. It is no outage of the server, unless
    /// the last request that ended had no answer: then the others wait for a server that does not answer.
    #[must_use]
    pub fn blame(&self) -> StoreErrorKind {
        if self.lock().is_silent { StoreErrorKind::Unavailable } else { StoreErrorKind::Contended }
    }

    /// Notes a request that had no answer within `limit`, and says [why](Self::blame). If that is less than the `usual` time,
    /// and its call had waited for a slot for as long, other calls are the reason.
    #[must_use]
    pub fn unanswered(
        &self,
        waited: Duration,
        (limit, usual): (Duration, Duration),
    ) -> StoreErrorKind {
        if limit >= usual || waited < limit {
            self.heard(false);
        }
        self.blame()
    }

    /// Waits until a request may be sent, which then may take as long as `time` says.
    pub async fn enter(&self, purpose: Purpose, time: impl Fn() -> Duration + Send) -> Slot<'_> {
        let slot = Slot { all: self, purpose, call: self.lock().next_call() };
        let mut overdue: Option<BoxFuture<'static, ()>> = None;
        poll_fn(|context| {
            loop {
                if self.take(&slot, &time, context) {
                    return Poll::Ready(());
                }
                let timer = overdue.get_or_insert_with(|| self.clock.sleep(self.next_overdue()));
                ready!(timer.as_mut().poll(context));
                overdue = None;
                self.take_back_overdue(&slot);
            }
        })
        .await;
        slot
    }

    /// Takes a slot for this call if it was given one, or one is free. Otherwise the call waits from now on, or still.
    fn take(&self, slot: &Slot<'_>, time: &impl Fn() -> Duration, context: &Context<'_>) -> bool {
        let now = self.clock.now();
        let until = now.plus(time());
        let Slot { purpose, call, .. } = *slot;
        let mut state = self.lock();
        if state.hold(call, until) {
            return true;
        }
        if state.waiting.is_empty() && self.has_room(&state, purpose) {
            state.taken.push(Taken { call, purpose, until });
            return true;
        }
        let waiting = Waiting { waker: context.waker().clone(), polled: now };
        state.waiting.insert((purpose, call), waiting);
        drop(state);
        self.hand_over();
        self.lock().hold(call, until)
    }

    /// Gives the free slots to the next calls that wait.
    fn hand_over(&self) {
        let until = self.clock.now().plus(HAND_OVER);
        loop {
            let mut state = self.lock();
            let next = state.waiting.first_key_value().map(|(next, _)| *next);
            let Some((purpose, call)) = next.filter(|(purpose, _)| self.has_room(&state, *purpose))
            else {
                return;
            };
            let waiting = state.waiting.remove(&(purpose, call));
            state.taken.push(Taken { call, purpose, until });
            drop(state);
            if let Some(Waiting { waker, .. }) = waiting {
                waker.wake();
            }
        }
    }

    fn has_room(&self, state: &SlotsState, purpose: Purpose) -> bool {
        let others = || state.taken.iter().filter(|taken| taken.purpose != Purpose::Settle).count();
        state.taken.len() < self.slots
            && (purpose == Purpose::Settle || others() < Self::most_of(self.slots, purpose))
    }

    /// How long it takes until a slot is overdue, as far as is known.
    fn next_overdue(&self) -> Duration {
        let ends = self.lock().taken.iter().map(|taken| taken.until).min();
        let overdue = ends.map(|until| until.plus(GRACE).since(self.clock.now()));
        overdue.map_or(LOOK_AGAIN, |overdue| overdue.min(LOOK_AGAIN))
    }

    /// Takes slots back whose calls are not polled any more. One is for the call that finds them: of a thousand that wait,
    /// perhaps no other is polled, and each would keep it from the next.
    fn take_back_overdue(&self, finder: &Slot<'_>) {
        let now = self.clock.now();
        let Slot { purpose, call, .. } = *finder;
        let mut state = self.lock();
        let before = state.taken.len();
        state.taken.retain(|taken| now < taken.until.plus(GRACE));
        let are_found = state.taken.len() < before;
        let goes_first = !state.is_waited_for_by_more_urgent(purpose, now);
        let has_none = state.taken.iter().all(|taken| taken.call != call);
        if are_found && goes_first && has_none && self.has_room(&state, purpose) {
            state.waiting.remove(&(purpose, call));
            state.taken.push(Taken { call, purpose, until: now.plus(HAND_OVER) });
        }
        drop(state);
        self.hand_over();
    }

    // A panic cannot leave the state half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, SlotsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotsState {
    const fn next_call(&mut self) -> u64 {
        self.calls = self.calls.wrapping_add(1);
        self.calls
    }

    /// Whether a more urgent call waits that is still polled, as each is when it [looks again](LOOK_AGAIN).
    fn is_waited_for_by_more_urgent(&self, than: Purpose, now: Timestamp) -> bool {
        let lately = LOOK_AGAIN.saturating_add(GRACE);
        let mut more_urgent = self.waiting.iter().take_while(|((purpose, _), _)| *purpose < than);
        more_urgent.any(|(_, waiting)| now < waiting.polled.plus(lately))
    }

    /// Whether the call has a slot, which it then holds until then.
    fn hold(&mut self, call: u64, until: Timestamp) -> bool {
        let taken = self.taken.iter_mut().find(|taken| taken.call == call);
        taken.map(|taken| taken.until = until).is_some()
    }
}

impl<'s> Slot<'s> {
    /// The slots of which it is one.
    #[must_use]
    pub const fn all(&self) -> &'s RequestSlots {
        self.all
    }

    /// Whether the slot was not given to another call meanwhile. If it was, close the connection: the other has its own.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.all.lock().taken.iter().any(|taken| taken.call == self.call)
    }
}

/// Also of a call that still waits.
impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let mut state = self.all.lock();
        state.waiting.remove(&(self.purpose, self.call));
        state.taken.retain(|taken| taken.call != self.call);
        let is_waited_for = !state.waiting.is_empty();
        drop(state);
        if is_waited_for {
            self.all.hand_over();
        }
    }
}

impl fmt::Debug for RequestSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSlots").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl fmt::Debug for Slot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "request_slots_tests.rs"]
mod tests;
