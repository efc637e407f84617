//! Detects calls of `run` inside themselves.
//!
//! A function that `run` calls may call `run` itself. With the same name and the same key, the
//! inner call would wait for the outer one, which waits for the inner one: every attempt would end
//! as busy. Therefore each key is noted while its function is polled, and an inner call for it
//! fails at once.

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
    static WITHIN: RefCell<Vec<OuterKey>> = const { RefCell::new(Vec::new()) };
}

/// A key, and the engine that processes it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct OuterKey {
    engine: usize,
    key: Key,
}

impl OuterKey {
    pub(crate) fn new(engine: &Engine, key: &Key) -> Self {
        // Engines of two stores can have equal keys. Clones of one engine share a clock and
        // different engines do not, so the clock's address identifies the engine.
        let engine = std::sync::Arc::as_ptr(engine.clock()).addr();
        Self { engine, key: key.clone() }
    }

    /// Whether its function is being polled.
    pub(crate) fn is_entered(&self) -> bool {
        WITHIN.try_with(|within| within.borrow().contains(self)).unwrap_or(false)
    }

    /// Wraps the function so that the key is noted while the function is polled.
    pub(crate) fn around(self, job: Job<'_>) -> Job<'_> {
        Box::new(move |call| Box::pin(Around { key: self, running: job(call) }))
    }
}

/// A function that notes its key while it is polled.
struct Around<'a> {
    key: OuterKey,
    running: BoxFuture<'a, Result<Returned, Failure>>,
}

impl Future for Around<'_> {
    type Output = Result<Returned, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _entered = Entered::new(self.key.clone());
        self.running.as_mut().poll(context)
    }
}

/// Removes the note when it is dropped, also during a panic.
struct Entered;

impl Entered {
    fn new(key: OuterKey) -> Self {
        // Fails only while the thread is ending; then `drop` removes nothing either.
        let _ = WITHIN.try_with(|within| within.borrow_mut().push(key));
        Self
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let _ = WITHIN.try_with(|within| within.borrow_mut().pop());
    }
}
