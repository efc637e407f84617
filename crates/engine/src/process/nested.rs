//! Invocations that are made by the handler of another one.
//!
//! A handler may call the engine itself. Its invocation cannot end before that call does, so a call
//! that waited for a second place in the process could wait for itself. It is part of the invocation whose
//! handler makes it, and asks for no place.

use std::{cell::RefCell, sync::Arc};

use super::Isolation;

thread_local! {
    /// The engines whose handlers this thread is polling, the innermost last.
    static POLLED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Notes that handlers of an engine are polled on this thread, until it is dropped.
pub(crate) struct Polling;

impl Polling {
    pub(crate) fn of(isolation: &Arc<Isolation>) -> Self {
        // Fails only while the thread is ending; then `drop` removes nothing either.
        let _ = POLLED.try_with(|polled| polled.borrow_mut().push(number(isolation)));
        Self
    }
}

impl Drop for Polling {
    fn drop(&mut self) {
        let _ = POLLED.try_with(|polled| polled.borrow_mut().pop());
    }
}

/// Whether a handler of the engine that has this `isolation` is being polled on this thread.
pub(crate) fn is_nested(isolation: &Arc<Isolation>) -> bool {
    POLLED.try_with(|polled| polled.borrow().contains(&number(isolation))).unwrap_or(false)
}

fn number(isolation: &Arc<Isolation>) -> usize {
    Arc::as_ptr(isolation).addr()
}
