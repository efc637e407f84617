//! Which handler is polled when.

use std::{
    future::{pending, poll_fn},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Wake,
    time::Duration,
};

use futures_util::task::noop_waker;
use lambda_idempotency_core::clock::{BoxFuture, Clock, SystemClock};

use super::*;
use crate::{
    call::{Call, History, RecordId, Shared, Subject},
    delivered::Delivered,
    delivery::Returned,
    handler::{Due, Latest},
};

type Work = BoxFuture<'static, Result<Returned, lambda_idempotency_core::failure::Failure>>;

fn handler(work: impl FnOnce() -> Work + Send + 'static) -> Handler<'static> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let subject = Subject { key: None, identity: None, attempt: None };
    let history = History::none(clock.now());
    let record = RecordId::new("test", "1");
    let call = Call::new(
        subject,
        record,
        history,
        None,
        Arc::clone(&clock),
        Delivered::default(),
        Shared::default(),
    );
    let latest = Latest { lease: None, stop: clock.now().plus(Duration::from_secs(60)) };
    let job = Box::new(|_| work());
    let due = Due { operation: "op", job, call, latest, clock, has_opentelemetry_fields: false };
    Handler::new(due)
}

/// Which record was polled, and whether it ended.
fn poll(running: &mut Running<'_>) -> Option<(Option<usize>, bool)> {
    match running.poll_one(&mut Context::from_waker(&noop_waker())) {
        Poll::Pending => None,
        Poll::Ready(Polled::Pending(..)) => Some((None, false)),
        Poll::Ready(Polled::Ended(at, ..)) => Some((Some(at), true)),
    }
}

#[test]
fn handlers_are_polled_one_at_a_time_in_the_order_of_their_starts() {
    let mut running = Running::default();
    for at in [7, 8] {
        running.start(at, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
    }
    assert_eq!([poll(&mut running), poll(&mut running)], [7, 8].map(|at| Some((Some(at), true))));
    assert_eq!(poll(&mut running), None);
}

#[test]
fn a_handler_that_wakes_itself_is_polled_once_in_a_turn() {
    let mut running = Running::default();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let wakes_itself = poll_fn(move |context| {
        counted.fetch_add(1, Ordering::Relaxed);
        context.waker().wake_by_ref();
        Poll::Pending
    });
    running.start(0, handler(|| Box::pin(wakes_itself)));
    running.start(1, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
    let turn = |running: &mut Running<'_>| std::iter::from_fn(|| poll(running)).count();
    assert_eq!(turn(&mut running), 2, "itself, and the other one");
    for turns in 2..5 {
        running.begin_turn();
        assert_eq!((turn(&mut running), polls.load(Ordering::Relaxed)), (1, turns));
    }
}

#[test]
fn a_handler_that_is_stopped_is_dropped_at_once_and_its_slot_used_again() {
    struct Dropped(Arc<AtomicUsize>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = Dropped(Arc::clone(&drops));
    let mut running = Running::default();
    let slot = running.start(
        0,
        handler(|| {
            Box::pin(async move {
                let _dropped = dropped;
                pending().await
            })
        }),
    );
    assert_eq!(poll(&mut running), Some((None, false)));
    assert!(running.stop(slot).is_some(), "it was called");
    assert_eq!((drops.load(Ordering::Relaxed), running.stop(slot)), (1, None));
    let next = running.start(1, handler(|| Box::pin(async { Ok(Returned::Nothing) })));
    assert_eq!((next, poll(&mut running)), (slot, Some((Some(1), true))));
}

#[test]
fn a_handler_that_is_woken_from_elsewhere_wakes_the_batch() {
    let mut running = Running::default();
    let kept: Arc<Mutex<Option<Waker>>> = Arc::default();
    let keeps = Arc::clone(&kept);
    let waits = poll_fn(move |context| {
        *keeps.lock().unwrap() = Some(context.waker().clone());
        Poll::Pending
    });
    running.start(0, handler(|| Box::pin(waits)));
    let (waker, woken) = counting();
    let context = &mut Context::from_waker(&waker);
    assert!(running.poll_one(context).is_ready() && running.poll_one(context).is_pending());
    let before = woken.0.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| kept.lock().unwrap().take().unwrap().wake());
    });
    assert_eq!(woken.0.load(Ordering::Relaxed), before + 1);
    running.begin_turn();
    assert!(running.poll_one(context).is_ready());
}

struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counting() -> (Waker, Arc<Count>) {
    let count = Arc::new(Count(AtomicUsize::new(0)));
    (Waker::from(Arc::clone(&count)), count)
}
