//! What calls of a store consume: requests, and units of capacity.
//!
//! A store says it with [`add`], wherever it knows it. Who makes the call measures it with [`measured`]. In between,
//! the numbers are kept by the thread that polls the call, so that the [`Store`](crate::store::Store) trait need not
//! know of them.
//!
//! ```
//! use lambda_idempotency_core::usage::{Usage, add, measured};
//!
//! async fn call_of_a_store() {
//!     add(Usage { requests: 1, capacity_units: 2.5 });
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let ((), usage) = measured(Box::pin(call_of_a_store())).await;
//! assert_eq!(usage, Usage { requests: 1, capacity_units: 2.5 });
//! # }
//! ```
//!
//! A store that makes its requests in other tasks is not measured there: what it adds is lost.

use std::{
    cell::Cell,
    pin::Pin,
    task::{Context, Poll, ready},
};

thread_local! {
    /// The usage of the call that this thread polls, if it is measured.
    static CURRENT: Cell<Option<Usage>> = const { Cell::new(None) };
}

/// What a call of a store consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Requests, with those that were sent again.
    pub requests: u32,
    /// Units of read and write capacity, as the store's server counts them; 0 if it does not say.
    pub capacity_units: f64,
}

/// Adds to the usage of the call that is being polled. Does nothing if it is not measured.
pub fn add(usage: Usage) {
    // Fails only while the thread is ending.
    let _ = CURRENT.try_with(|current| {
        if let Some(Usage { requests, capacity_units }) = current.get() {
            let requests = requests.saturating_add(usage.requests);
            let capacity_units = capacity_units + usage.capacity_units;
            current.set(Some(Usage { requests, capacity_units }));
        }
    });
}

/// Whether the call that is being polled is measured.
#[must_use]
pub fn is_measured() -> bool {
    CURRENT.try_with(|current| current.get().is_some()).unwrap_or(false)
}

/// Measures a call of a store.
pub const fn measured<F>(call: F) -> Measured<F> {
    Measured { call, usage: Usage { requests: 0, capacity_units: 0.0 } }
}

/// A call of a store that is measured: see [`measured`].
#[derive(Debug)]
pub struct Measured<F> {
    call: F,
    usage: Usage,
}

impl<F: Future + Unpin> Future for Measured<F> {
    type Output = (F::Output, Usage);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let scope =
            Scope { outer: CURRENT.try_with(|c| c.replace(Some(this.usage))).ok().flatten() };
        let polled = Pin::new(&mut this.call).poll(context);
        this.usage = CURRENT.try_with(Cell::get).ok().flatten().unwrap_or(this.usage);
        drop(scope);
        Poll::Ready((ready!(polled), this.usage))
    }
}

/// Puts back what was there before, also if the call panics.
struct Scope {
    outer: Option<Usage>,
}

impl Drop for Scope {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| current.set(self.outer));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        task::Waker,
    };

    use super::*;
    use crate::clock::BoxFuture;

    const ONE: Usage = Usage { requests: 1, capacity_units: 0.5 };

    fn call(inside: Option<BoxFuture<'static, ()>>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            add(ONE);
            if let Some(inside) = inside {
                inside.await;
            }
            add(ONE);
        })
    }

    #[tokio::test]
    async fn a_call_is_measured_without_those_inside_it_that_are_measured_themselves() {
        let inside = async {
            let ((), usage) = measured(call(None)).await;
            assert_eq!(usage.requests, 2);
        };
        let ((), usage) = measured(call(Some(Box::pin(inside)))).await;
        assert_eq!(usage, Usage { requests: 2, capacity_units: 1.0 });
    }

    #[tokio::test]
    async fn nothing_is_measured_outside_of_a_call_that_panicked() {
        assert!(!is_measured());
        let call: BoxFuture<'static, ()> = Box::pin(async { panic!("{}", is_measured()) });
        let mut call = measured(call);
        let mut context = Context::from_waker(Waker::noop());
        let caught = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut call).poll(&mut context)));
        assert_eq!(*caught.unwrap_err().downcast::<String>().unwrap(), "true");
        assert!(!is_measured());
        add(ONE);
        assert_eq!(measured(Box::pin(async {})).await, ((), Usage::default()));
    }
}
