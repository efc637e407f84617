//! Virtual time: what is to happen, in order. Time passes only from one event to the next.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};

/// When the simulation begins, on a clock that is right.
const BEGIN: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Microseconds since the simulation began.
pub type Micros = u64;

/// What is to happen at which time. Clones share it.
#[derive(Clone, Default)]
pub struct Timeline(Arc<Shared>);

#[derive(Default)]
struct Shared {
    now: AtomicU64,
    events: Mutex<Events>,
}

#[derive(Default)]
struct Events {
    heap: BinaryHeap<Reverse<Event>>,
    /// Events of one instant happen in the order in which they were planned.
    planned: u64,
}

struct Event {
    at: Micros,
    number: u64,
    what: What,
}

enum What {
    Wake(Arc<Sleeper>),
    Do(Box<dyn FnOnce() + Send>),
}

/// Who is woken; nobody, if the sleep was dropped.
#[derive(Default)]
struct Sleeper(Mutex<Option<Waker>>);

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl Timeline {
    /// Microseconds since the simulation began.
    #[must_use]
    pub fn now(&self) -> Micros {
        self.0.now.load(Ordering::Relaxed)
    }

    /// Plans what is to be done.
    pub fn after(&self, duration: Duration, what: impl FnOnce() + Send + 'static) {
        self.plan(self.now() + micros(duration), What::Do(Box::new(what)));
    }

    /// Ends when `duration` has passed.
    #[must_use]
    pub fn sleep(&self, duration: Duration) -> Sleep {
        Sleep { timeline: self.clone(), due: self.now() + micros(duration), sleeper: None }
    }

    /// Lets time pass until the next event, which happens. `false` if there is none.
    pub fn advance(&self) -> bool {
        loop {
            let Some(Reverse(event)) = self.events().heap.pop() else { return false };
            match event.what {
                What::Wake(sleeper) => {
                    // A sleep that was dropped does not let time pass.
                    let Some(waker) = sleeper.lock().take() else { continue };
                    self.0.now.store(event.at, Ordering::Relaxed);
                    waker.wake();
                }
                What::Do(what) => {
                    self.0.now.store(event.at, Ordering::Relaxed);
                    what();
                }
            }
            return true;
        }
    }

    fn plan(&self, at: Micros, what: What) {
        let mut events = self.events();
        events.planned += 1;
        let number = events.planned;
        events.heap.push(Reverse(Event { at, number, what }));
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        self.0.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sleeper {
    fn lock(&self) -> MutexGuard<'_, Option<Waker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Timeline::sleep`].
pub struct Sleep {
    timeline: Timeline,
    due: Micros,
    sleeper: Option<Arc<Sleeper>>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timeline.now() >= self.due {
            return Poll::Ready(());
        }
        if let Some(sleeper) = &self.sleeper {
            sleeper
                .lock()
                .get_or_insert_with(|| context.waker().clone())
                .clone_from(context.waker());
        } else {
            let sleeper = Arc::new(Sleeper(Mutex::new(Some(context.waker().clone()))));
            self.timeline.plan(self.due, What::Wake(Arc::clone(&sleeper)));
            self.sleeper = Some(sleeper);
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(sleeper) = &self.sleeper {
            *sleeper.lock() = None;
        }
    }
}

/// The clock of one machine, which may be wrong.
#[derive(Clone)]
pub struct MachineClock {
    /// The right time.
    pub timeline: Timeline,
    /// By how many milliseconds the clock is fast; slow if that is negative.
    pub ahead: i64,
}

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        let right = BEGIN.as_millis() + self.timeline.now() / 1000;
        Timestamp::from_millis(right.saturating_add_signed(self.ahead))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(self.timeline.sleep(duration))
    }
}

/// A duration in microseconds.
#[must_use]
pub fn micros(duration: Duration) -> Micros {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX / 2)
}
