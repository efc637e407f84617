//! The wakes of handlers by other threads, in every order that a processor may give them.
//!
//! `running/waking.rs` is compiled again with the types of [`loom`], which explores the interleavings and
//! the values that each load may return. The mutants weaken the flag of a task, and show that the check can fail.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "a test, which compiles a source of the engine again"
)]

use std::{
    cell::Cell,
    sync::Arc,
    task::{Wake as _, Waker},
};

use loom::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

/// The types that the source imports.
mod sync {
    pub(crate) use loom::sync::{Mutex, MutexGuard, atomic::Ordering};

    pub(crate) use crate::{AtomicWaker, Flag as AtomicBool};
}

#[path = "../../src/running/waking.rs"]
mod waking;

/// How a flag is swapped.
#[derive(Clone, Copy)]
enum Swap {
    AsItIs,
    /// It is cleared by a store, which acquires nothing.
    Stored,
    /// Without ordering anything else.
    Relaxed,
}

thread_local! {
    /// The threads of a model share the one of its test.
    static SWAP: Cell<Swap> = const { Cell::new(Swap::AsItIs) };
}

pub(crate) struct Flag(AtomicBool);

impl Flag {
    pub(crate) fn new(value: bool) -> Self {
        Self(AtomicBool::new(value))
    }

    pub(crate) fn swap(&self, value: bool, ordering: Ordering) -> bool {
        match SWAP.get() {
            Swap::Stored if !value => {
                self.0.store(value, Ordering::Release);
                true
            }
            Swap::Relaxed => self.0.swap(value, Ordering::Relaxed),
            Swap::AsItIs | Swap::Stored => self.0.swap(value, ordering),
        }
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

/// A handler was woken and is about to be polled, while another thread makes its data ready and wakes it.
/// In the end every wake was followed by a poll, so the last poll has seen the data.
fn no_wake_is_lost(swap: Swap) {
    SWAP.set(swap);
    loom::model(|| {
        let woken = Arc::new(waking::Woken::default());
        let task = Arc::new(waking::HandlerWaker::new(0, Arc::clone(&woken)));
        let data = Arc::new(AtomicUsize::new(0));
        task.wake_by_ref();
        let (waker, written) = (Waker::from(Arc::clone(&task)), Arc::clone(&data));
        let other = thread::spawn(move || {
            written.store(1, Ordering::Release);
            waker.wake();
        });
        let mut seen = 0;
        let mut poll_woken = || {
            while woken.next().is_some() {
                task.begin_poll();
                seen = data.load(Ordering::Acquire);
            }
        };
        poll_woken();
        other.join().unwrap();
        // Now the data can be seen, but only a wake leads to another poll.
        poll_woken();
        assert_eq!(seen, 1, "a wake was lost");
    });
}

#[test]
fn no_wake_of_another_thread_is_lost() {
    no_wake_is_lost(Swap::AsItIs);
}

#[test]
#[should_panic(expected = "a wake was lost")]
fn mutant_that_clears_the_flag_by_a_store_is_caught() {
    no_wake_is_lost(Swap::Stored);
}

#[test]
#[should_panic(expected = "a wake was lost")]
fn mutant_that_swaps_the_flag_without_ordering_is_caught() {
    no_wake_is_lost(Swap::Relaxed);
}
