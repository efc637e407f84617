//! A future that calls drive together: whichever of them is polled goes on for all.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::future::{FutureExt as _, Shared, WeakShared};

use crate::clock::BoxFuture;

/// One call's share in a future of all calls.
///
/// A [`Shared`] that is polled while another call polls it leaves the work to that call, which need not come back: it may have
/// its answer already. So each call counts its polls, and goes on for those that came while it polled.
pub struct Together<T: Clone> {
    shared: Shared<BoxFuture<'static, T>>,
    polls: Arc<AtomicUsize>,
}

/// The same future, without keeping it.
pub struct WeakTogether<T: Clone> {
    shared: WeakShared<BoxFuture<'static, T>>,
    polls: Arc<AtomicUsize>,
}

impl<T: Clone> Together<T> {
    /// Lets calls drive this future together.
    #[must_use]
    pub fn new(future: BoxFuture<'static, T>) -> Self {
        Self { shared: future.shared(), polls: Arc::default() }
    }

    /// Its result, if it has ended.
    #[must_use]
    pub fn peek(&self) -> Option<&T> {
        self.shared.peek()
    }

    /// The same future, without keeping it; `None` if it has ended.
    #[must_use]
    pub fn downgrade(&self) -> Option<WeakTogether<T>> {
        let shared = self.shared.downgrade()?;
        Some(WeakTogether { shared, polls: Arc::clone(&self.polls) })
    }
}

impl<T: Clone> WeakTogether<T> {
    /// The future, if a call still waits for it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Together<T>> {
        let shared = self.shared.upgrade()?;
        Some(Together { shared, polls: Arc::clone(&self.polls) })
    }
}

impl<T: Clone> Clone for Together<T> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), polls: Arc::clone(&self.polls) }
    }
}

impl<T: Clone> Future for Together<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut polls = self.polls.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        loop {
            if let Poll::Ready(result) = Pin::new(&mut self.shared).poll(cx) {
                return Poll::Ready(result);
            }
            let now = self.polls.load(Ordering::SeqCst);
            if now == polls {
                return Poll::Pending;
            }
            polls = now;
        }
    }
}

impl<T: Clone> fmt::Debug for Together<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Together")
    }
}

impl<T: Clone> fmt::Debug for WeakTogether<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakTogether")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{Mutex, atomic::AtomicBool},
        task::Waker,
    };

    use super::*;

    /// While the first call polls, something happens, and the second call is polled in vain.
    #[test]
    fn a_call_goes_on_for_those_that_come_while_it_polls() {
        let has_happened = Arc::new(AtomicBool::new(false));
        let second: Arc<Mutex<Option<Together<()>>>> = Arc::default();
        let inner = {
            let (has_happened, second) = (Arc::clone(&has_happened), Arc::clone(&second));
            std::future::poll_fn(move |cx| {
                if has_happened.swap(true, Ordering::Relaxed) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                let mut second = second.lock().unwrap();
                let polled =
                    second.as_mut().unwrap().poll_unpin(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending(), "the first one polls");
                Poll::Pending
            })
        };
        let mut first = Together::new(inner.boxed());
        *second.lock().unwrap() = Some(first.clone());
        let polled = first.poll_unpin(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "the second one would wait for whoever is woken next");
    }
}
