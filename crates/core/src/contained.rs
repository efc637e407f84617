//! Runs user code outside a handler's future, where a panic must not end the batch.

use std::{
    any::Any,
    future::{Future, poll_fn},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::Poll,
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

/// How a future of the user ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<T> {
    /// It is through.
    Through(T),
    /// It panicked, when it was made or polled. The message of the panic is in the function's log.
    Panicked,
    /// It was dropped: its time was over.
    Late,
}

/// Polls the future that `start` makes until `until` is ready, and catches panics of both and of its destructor.
pub async fn run<F: Future + Unpin>(
    start: impl FnOnce() -> F,
    until: impl Future<Output = ()>,
) -> Ended<F::Output> {
    let Some(running) = caught(start) else { return Ended::Panicked };
    let (mut running, mut until) = (Contained::new(running), pin!(until));
    poll_fn(move |context| {
        let polled = running.get_mut().and_then(|call| caught(|| Pin::new(call).poll(context)));
        match polled {
            Some(Poll::Ready(value)) => Poll::Ready(Ended::Through(value)),
            Some(Poll::Pending) => until.as_mut().poll(context).map(|()| Ended::Late),
            None => Poll::Ready(Ended::Panicked),
        }
    })
    .await
}

/// A value of the user, whose destructor may panic.
#[derive(Clone)]
pub struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    /// Holds this value.
    pub const fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Holds nothing.
    pub const fn none() -> Self {
        Self(None)
    }

    /// The value, unless it was taken.
    pub const fn get(&self) -> Option<&T> {
        self.0.as_ref()
    }

    /// The value, to be changed, unless it was taken.
    pub const fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut()
    }

    /// Takes the value out; the caller drops it.
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    struct PanicsAtTheEnd;

    impl Drop for PanicsAtTheEnd {
        fn drop(&mut self) {
            panic!("in a destructor");
        }
    }

    #[tokio::test]
    async fn what_a_future_of_the_user_does_ends_nothing_else() {
        assert_eq!(run(|| ready(1), pending()).await, Ended::Through(1));
        assert_eq!(
            run(|| -> std::future::Ready<()> { panic!("at once") }, pending()).await,
            Ended::Panicked
        );
        assert_eq!(
            run(|| Box::pin(async { panic!("later") }), pending()).await,
            Ended::<()>::Panicked
        );
        let hangs = || {
            Box::pin(async {
                let _guard = PanicsAtTheEnd;
                pending::<()>().await;
            })
        };
        assert_eq!(run(hangs, ready(())).await, Ended::Late);
    }
}
