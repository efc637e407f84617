//! Which keys are being worked on further up the stack.
//!
//! A function that `run` calls may call `run` itself. With the same name and the same key the inner call
//! would wait for the outer one, which waits for the inner: it ends as busy, as often as it is tried.
//! So each key is noted while its function is polled, and an inner call for it fails at once.

use std::{
    cell::RefCell,
    pin::Pin,
    task::{Context, Poll},
};

use lambda_idempotency_core::{clock::BoxFuture, failure::Failure};
use lambda_idempotency_engine::batch::{Engine, Job, Returned};
use lambda_idempotency_keys::Key;

thread_local! {
    /// The keys whose functions this thread is polling, the innermost last.
    static WITHIN: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// A key, and the engine that has it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    engine: usize,
    key: Key,
}

impl Place {
    pub(crate) fn new(engine: &Engine, key: &Key) -> Self {
        // The clones of an engine share a clock, and no others do; engines of two stores may well have
        // equal keys.
        let engine = std::sync::Arc::as_ptr(engine.clock()).addr();
        Self { engine, key: key.clone() }
    }

    /// Whether its function is being polled.
    pub(crate) fn is_entered(&self) -> bool {
        WITHIN.try_with(|within| within.borrow().contains(self)).unwrap_or(false)
    }

    /// The same function, which notes that it is being polled.
    pub(crate) fn around(self, job: Job<'_>) -> Job<'_> {
        Box::new(move |call| Box::pin(Around { place: self, running: job(call) }))
    }
}

/// A function that notes its key while it is polled.
struct Around<'a> {
    place: Place,
    running: BoxFuture<'a, Result<Returned, Failure>>,
}

impl Future for Around<'_> {
    type Output = Result<Returned, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _entered = Entered::new(self.place.clone());
        self.running.as_mut().poll(context)
    }
}

/// Takes the note back when it is dropped, also by a panic.
struct Entered;

impl Entered {
    fn new(place: Place) -> Self {
        // Where the thread is ending, nothing is noted, and nothing taken back.
        let _ = WITHIN.try_with(|within| within.borrow_mut().push(place));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = WITHIN.try_with(|within| within.borrow_mut().pop());
    }
}
