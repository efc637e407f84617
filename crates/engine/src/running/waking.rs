//! Which handlers were woken, and in which order.

use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    task::{Wake, Waker},
};

use super::sync::{AtomicBool, AtomicWaker, Mutex, MutexGuard, Ordering};

/// The slots of the handlers that were woken, in that order.
pub(super) struct Woken {
    slots: Mutex<VecDeque<usize>>,
    /// The task that polls the batch.
    batch: AtomicWaker,
}

impl Default for Woken {
    fn default() -> Self {
        Self { slots: Mutex::new(VecDeque::new()), batch: AtomicWaker::new() }
    }
}

impl Woken {
    /// Makes room for this many handlers at once.
    pub(super) fn reserve(&self, handlers: usize) {
        self.lock().reserve_exact(handlers);
    }

    /// From now on, the first handler that is woken wakes this task.
    pub(super) fn wakes(&self, batch: &Waker) {
        self.batch.register(batch);
    }

    /// Takes the slot that was woken first.
    pub(super) fn next(&self) -> Option<usize> {
        self.lock().pop_front()
    }

    /// Puts these slots back, after all others.
    pub(super) fn put_back(&self, slots: impl Iterator<Item = usize>) {
        self.lock().extend(slots);
    }

    // A panic cannot leave the queue half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, VecDeque<usize>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the handler in a slot.
pub(super) struct HandlerWaker {
    slot: usize,
    /// Whether the slot is among those that were woken.
    is_woken: AtomicBool,
    woken: Arc<Woken>,
}

impl HandlerWaker {
    pub(super) fn new(slot: usize, woken: Arc<Woken>) -> Self {
        Self { slot, is_woken: AtomicBool::new(false), woken }
    }

    /// The handler is about to be polled: from here on it can be woken again.
    ///
    /// A swap and not a store: it acquires what a thread wrote before a wake that found the flag set, so
    /// that the handler sees it when it is polled now.
    pub(super) fn begin_poll(&self) {
        self.is_woken.swap(false, Ordering::AcqRel);
    }
}

impl Wake for HandlerWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            self.woken.lock().push_back(self.slot);
            self.woken.batch.wake();
        }
    }
}
