//! Runs user code outside a handler's future, where a panic must not end the batch.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Calls `code`. `None` if it panicked.
pub fn caught<R>(code: impl FnOnce() -> R) -> Option<R> {
    catch_unwind(AssertUnwindSafe(code)).map_err(discard).ok()
}

/// Drops the payload of a panic. It can be any value of the user, and its destructor may panic too.
pub fn discard(thrown: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(thrown))) {
        mem::forget(again);
    }
}

/// A value of the user, whose destructor may panic.
#[derive(Clone)]
pub struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub const fn new(value: T) -> Self {
        Self(Some(value))
    }

    pub const fn none() -> Self {
        Self(None)
    }

    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    pub const fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    pub const fn take(&mut self) -> Option<T> {
        self.0.take()
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        if value.is_some() {
            caught(|| drop(value));
        }
    }
}
