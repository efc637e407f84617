//! The answer to a request, which may never come.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
};

/// Ends with the answer.
pub(crate) struct Reply<T>(Arc<Mutex<State<T>>>);

struct State<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

impl<T> Reply<T> {
    pub(super) fn give(&self, answer: T) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.answer = Some(answer);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl<T> Default for Reply<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State { answer: None, waker: None })))
    }
}

impl<T> Clone for Reply<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Future for Reply<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = state.answer.take() {
            return Poll::Ready(answer);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
