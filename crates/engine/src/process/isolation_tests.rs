//! Who waits for whom. All orders of events are in `tests/shuttle`.

use std::sync::Arc;

use lambda_idempotency_core::clock::Timestamp;

use super::{
    isolation::{Isolation, Until},
    nested::{Polling, is_nested},
};

const NOW: Timestamp = Timestamp::from_secs(1000);
const UNTIL: Until =
    Until { taken: Timestamp::from_secs(1030), waiting: Timestamp::from_secs(1010) };

#[test]
fn places_are_taken_in_the_order_in_which_they_were_asked_for() {
    let isolation = Arc::new(Isolation::default());
    let (first, taken) = isolation.ask(false, UNTIL, NOW);
    assert_eq!(taken, Ok(()));
    let (isolated, taken) = isolation.ask(true, UNTIL, NOW);
    assert_eq!(taken, Err(UNTIL.taken));
    let (last, taken) = isolation.ask(false, UNTIL, NOW);
    assert_eq!(taken, Err(UNTIL.waiting), "behind the one that waits for isolation");
    assert_eq!(first.ask(UNTIL, NOW), Ok(()), "what is taken stays taken");
    drop(first);
    assert_eq!(last.ask(UNTIL, NOW), Err(UNTIL.waiting));
    assert_eq!(isolated.ask(UNTIL, NOW), Ok(()));
    assert_eq!(last.ask(UNTIL, NOW), Err(UNTIL.taken));
    drop(isolated);
    assert_eq!(last.ask(UNTIL, NOW), Ok(()));
    assert_eq!(isolation.extent(), 1);
    drop(last);
    assert_eq!(isolation.extent(), 0);
}

#[test]
fn a_call_is_nested_in_every_engine_whose_handlers_are_polled() {
    let [outer, inner, other] = [(); 3].map(|()| Arc::new(Isolation::default()));
    let polling = Polling::of(&outer);
    let within = Polling::of(&inner);
    assert_eq!([&outer, &inner, &other].map(is_nested), [true, true, false]);
    drop(within);
    assert_eq!([&outer, &inner, &other].map(is_nested), [true, false, false]);
    drop(polling);
    assert!(!is_nested(&outer));
}
