//! With a clock that follows the paused time of the runtime.

use std::{future::Future, iter::from_fn, pin::pin};

use tokio::time::Instant;

use super::*;

/// More than a test takes.
const HOUR: Duration = Duration::from_secs(3600);
fn hour() -> Duration {
    HOUR
}

const SECOND: Duration = Duration::from_secs(1);

struct Paused(Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH.plus(self.0.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

fn slots(slots: usize) -> RequestSlots {
    RequestSlots::new(slots, Arc::new(Paused(Instant::now())))
}

/// Polls once.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    polled(pin!(future))
}

fn polled<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

fn enter(slots: &RequestSlots, purpose: Purpose) -> Option<Slot<'_>> {
    now(slots.enter(purpose, hour))
}

/// As many slots as there are for this purpose.
fn fill(slots: &RequestSlots, purpose: Purpose) -> Vec<Slot<'_>> {
    from_fn(|| enter(slots, purpose)).collect()
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn one_of_six_is_kept_for_settlements_and_none_of_one() {
    let most = |all| RequestSlots::most_of(all, Purpose::Claim);
    assert_eq!([1, 2, 3, 4, 6, 7, 12, 13].map(most), [1, 1, 2, 3, 5, 5, 10, 10]);
    for purpose in [Purpose::Claim, Purpose::Hurry] {
        let slots = slots(12);
        let held = fill(&slots, purpose);
        assert_eq!((held.len(), fill(&slots, Purpose::Settle).len()), (10, 2));
        drop(held);
        assert_eq!(fill(&slots, Purpose::Settle).len(), 12, "they may use all");
    }
}

/// Settlements go before commits, and these before claims, whichever waited for longer.
#[tokio::test(start_paused = true)]
async fn the_most_urgent_call_goes_first_and_then_the_one_that_waited_for_longest() {
    for most in [1, 4] {
        let slots = slots(most);
        let mut held = fill(&slots, Purpose::Hurry);
        let _settling = fill(&slots, Purpose::Settle);
        let purposes = [Purpose::Claim, Purpose::Claim, Purpose::Hurry, Purpose::Settle];
        let mut waiting: Vec<_> = purposes
            .iter()
            .enumerate()
            .map(|(n, purpose)| (n, Box::pin(slots.enter(*purpose, hour))))
            .collect();
        for (_, call) in &mut waiting {
            assert!(polled(call.as_mut()).is_none());
        }
        held.pop();
        let order: Vec<_> = from_fn(|| {
            let at = (0..waiting.len()).find(|at| {
                let (_, call) = &mut waiting[*at];
                polled(call.as_mut()).is_some()
            });
            at.map(|at| waiting.remove(at).0)
        })
        .collect();
        assert_eq!(order, [3, 2, 0, 1], "{most}");
    }
}

/// The bound holds for all: a call without a slot never sends its request.
#[tokio::test(start_paused = true)]
async fn no_call_goes_beyond_the_slots_however_long_it_waits() {
    let slots = slots(12);
    let held = fill(&slots, Purpose::Settle);
    for purpose in [Purpose::Settle, Purpose::Hurry, Purpose::Claim] {
        let call = slots.enter(purpose, hour);
        let waited = tokio::time::timeout(HOUR / 4, call).await;
        assert!(waited.is_err(), "{purpose:?}");
    }
    assert_eq!((slots.taken(), held.iter().all(Slot::is_held)), (12, true));
}

/// As the calls of a stream, while the body of the loop over it makes a call.
#[tokio::test(start_paused = true)]
async fn a_slot_that_is_held_for_too_long_goes_to_another_call() {
    let slots = slots(4);
    let held: Vec<_> = from_fn(|| now(slots.enter(Purpose::Settle, || SECOND))).collect();
    let began = Instant::now();
    let slot = slots.enter(Purpose::Claim, || SECOND).await;
    assert_eq!(began.elapsed(), SECOND + GRACE);
    assert!(slot.is_held() && !held.iter().any(Slot::is_held));
    drop(held);
    assert_eq!((slots.taken(), slot.is_held()), (1, true), "they have none to give back");
}

/// A thousand calls that wait, and are not polled any more. What they wait for would pass through the hands of each.
#[tokio::test(start_paused = true)]
async fn who_finds_an_overdue_slot_does_not_wait_for_calls_that_are_not_polled() {
    for (theirs, own) in [
        (Purpose::Claim, Purpose::Claim),
        (Purpose::Claim, Purpose::Settle),
        (Purpose::Settle, Purpose::Claim),
    ] {
        let slots = slots(12);
        let _held: Vec<_> = from_fn(|| now(slots.enter(Purpose::Settle, || SECOND))).collect();
        let mut waiting: Vec<_> = (0..1000).map(|_| Box::pin(slots.enter(theirs, hour))).collect();
        assert!(waiting.iter_mut().all(|call| polled(call.as_mut()).is_none()));
        for most in [SECOND + GRACE, HAND_OVER + GRACE] {
            let began = Instant::now();
            let slot = slots.enter(own, hour).await;
            assert!(began.elapsed() <= most, "{theirs:?}, {own:?}: {:?}", began.elapsed());
            assert!(slot.is_held() && slots.taken() <= 12);
        }
    }
}

/// The claim looks first.
#[tokio::test(start_paused = true)]
async fn an_overdue_slot_goes_to_a_more_urgent_call_that_is_polled() {
    let slots = slots(1);
    let _held = now(slots.enter(Purpose::Settle, || SECOND));
    let order = std::cell::RefCell::new(Vec::new());
    let enter = async |purpose| {
        let _slot = slots.enter(purpose, hour).await;
        order.borrow_mut().push(purpose);
    };
    tokio::join!(biased; enter(Purpose::Claim), enter(Purpose::Settle));
    assert_eq!(*order.borrow(), [Purpose::Settle, Purpose::Claim]);
}

/// It is not polled, and the next one is. It keeps its turn.
#[tokio::test(start_paused = true)]
async fn a_slot_that_is_not_used_goes_to_the_next_call() {
    let slots = slots(1);
    let held = enter(&slots, Purpose::Claim);
    let mut first = pin!(slots.enter(Purpose::Claim, hour));
    let mut second = pin!(slots.enter(Purpose::Claim, hour));
    let mut third = pin!(slots.enter(Purpose::Claim, hour));
    for call in [first.as_mut(), second.as_mut(), third.as_mut()] {
        assert!(polled(call).is_none());
    }
    drop(held);
    let began = Instant::now();
    let slot = second.await;
    assert_eq!(began.elapsed(), LOOK_AGAIN);
    assert!(polled(first.as_mut()).is_none());
    drop(slot);
    assert!(polled(third.as_mut()).is_none(), "it came later");
    assert!(polled(first.as_mut()).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_while_it_waits_leaves_its_turn_to_the_next() {
    let slots = slots(1);
    let held = enter(&slots, Purpose::Claim);
    let mut first = Box::pin(slots.enter(Purpose::Claim, hour));
    let mut second = pin!(slots.enter(Purpose::Claim, hour));
    assert!(polled(first.as_mut()).is_none() && polled(second.as_mut()).is_none());
    drop(held);
    drop(first);
    pass(Duration::ZERO).await;
    assert!(polled(second.as_mut()).is_some(), "without a timer");
}

/// Of a loop over a stream of calls, none reports anything while its body runs.
#[tokio::test(start_paused = true)]
async fn waiting_for_a_slot_is_an_outage_only_if_the_last_request_had_no_answer() {
    let slots = slots(4);
    assert_eq!(slots.blame(), StoreErrorKind::Contended, "nothing is known of the server");
    for (is_answered, kind) in
        [(false, StoreErrorKind::Unavailable), (true, StoreErrorKind::Contended)]
    {
        slots.heard(is_answered);
        assert_eq!(slots.blame(), kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_other_calls_left_too_little_time_is_no_outage() {
    for (waited, limit, kind) in [
        (Duration::ZERO, SECOND, StoreErrorKind::Unavailable),
        (SECOND * 9, SECOND, StoreErrorKind::Unavailable),
        (SECOND / 10, SECOND / 2, StoreErrorKind::Unavailable),
        (SECOND / 2, SECOND / 2, StoreErrorKind::Contended),
        (SECOND * 9, SECOND / 20, StoreErrorKind::Contended),
    ] {
        let kind_of = slots(4).unanswered(waited, (limit, SECOND));
        assert_eq!(kind_of, kind, "{waited:?}, {limit:?}");
    }
}
