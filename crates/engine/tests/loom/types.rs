//! The types of `loom`, with the methods that the engine uses.

use std::task::Waker;

use loom::sync::atomic::{AtomicBool, Ordering};

/// What a flag does when it is swapped.
pub(crate) trait Swap: Send + Sync + 'static {
    fn swap(flag: &AtomicBool, value: bool, ordering: Ordering) -> bool;
}

/// A flag whose swap is replaced.
pub(crate) struct Flag<S>(AtomicBool, std::marker::PhantomData<S>);

impl<S: Swap> Flag<S> {
    pub(crate) fn new(value: bool) -> Self {
        Self(AtomicBool::new(value), std::marker::PhantomData)
    }

    pub(crate) fn swap(&self, value: bool, ordering: Ordering) -> bool {
        S::swap(&self.0, value, ordering)
    }
}

pub(crate) struct AtomicWaker(loom::future::AtomicWaker);

impl AtomicWaker {
    pub(crate) fn new() -> Self {
        Self(loom::future::AtomicWaker::new())
    }

    pub(crate) fn register(&self, waker: &Waker) {
        self.0.register_by_ref(waker);
    }

    pub(crate) fn wake(&self) {
        self.0.wake();
    }
}
