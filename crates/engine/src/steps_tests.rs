//! How long a step waits, and which steps may be called.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::Context,
};

use futures_util::task::noop_waker;
use lambda_idempotency_core::store::StoreErrorKind;

use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn called(steps: &Arc<Steps>, name: &str) -> CalledStep {
    match steps.begin(name).unwrap() {
        Begun::Calls(called) => called,
        Begun::Before(_) => panic!("{name} was called before"),
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&noop_waker()))
}

#[test]
fn a_step_returns_when_the_store_has_its_result() {
    let steps = Steps::new(&KeptSteps::Stored(None));
    let mut one = pin!(called(&steps, "one").ended(raw("1")));
    let mut two = pin!(called(&steps, "two").ended(raw("2")));
    assert!(poll(one.as_mut()).is_pending());
    let first = steps.take().unwrap();
    assert!(poll(two.as_mut()).is_pending() && steps.take().is_some() && steps.take().is_none());
    steps.are_in_store(&"{\"other\":1}".into());
    assert!(poll(one.as_mut()).is_pending());
    steps.are_in_store(&first);
    assert!(matches!(poll(one.as_mut()), Poll::Ready(Ok(()))));
    assert!(poll(two.as_mut()).is_pending(), "the store has only the first");
    steps.are_in_store(&"{\"one\":1,\"two\":2}".into());
    assert!(matches!(poll(two.as_mut()), Poll::Ready(Ok(()))));
}

#[test]
fn a_result_that_is_refused_ends_the_steps_that_wait_and_no_others() {
    let steps = Steps::new(&KeptSteps::Stored(None));
    let refused = StoreError::new(StoreErrorKind::Denied, "no permission");
    steps.are_refused(&refused);
    let mut one = pin!(called(&steps, "one").ended(raw("1")));
    assert!(poll(one.as_mut()).is_pending(), "that was before");
    steps.are_refused(&refused);
    let Poll::Ready(Err(error @ StepError::NotKept { .. })) = poll(one.as_mut()) else { panic!() };
    assert!(error.to_string().contains("`one`"));
    let mut two = pin!(called(&steps, "two").ended(raw("2")));
    assert!(poll(two.as_mut()).is_pending(), "it may be kept with the next write");
}

#[test]
fn a_step_of_a_handler_that_has_ended_is_not_kept() {
    let steps = Steps::new(&KeptSteps::Stored(None));
    let (late, mut waits) = (called(&steps, "late"), pin!(called(&steps, "one").ended(raw("1"))));
    assert!(poll(waits.as_mut()).is_pending());
    steps.end();
    let ended = |polled| matches!(polled, Poll::Ready(Err(StepError::HandlerEnded { .. })));
    assert!(ended(poll(waits.as_mut())) && ended(poll(pin!(late.ended(raw("2"))))));
    assert!(matches!(steps.begin("two"), Err(StepError::HandlerEnded { .. })));
}

#[test]
fn a_name_is_used_once_in_an_attempt_unless_its_step_did_not_end() {
    let steps = Steps::new(&KeptSteps::Stored(Some("{\"before\":1}".into())));
    drop(called(&steps, "one"));
    let one = called(&steps, "one");
    assert!(matches!(steps.begin("one"), Err(StepError::Twice { .. })), "it runs");
    assert!(poll(pin!(one.ended(raw("1")))).is_pending());
    assert!(matches!(steps.begin("one"), Err(StepError::Twice { .. })), "it has ended");
    assert!(matches!(steps.begin("before"), Ok(Begun::Before(result)) if result.get() == "1"));
    assert!(matches!(steps.begin("before"), Err(StepError::Twice { .. })));
}

#[test]
fn a_name_is_short_and_visible() {
    let steps = Steps::new(&KeptSteps::Stored(None));
    for name in ["", "two words", "tab\t", "groß", &"x".repeat(65)] {
        let refused = steps.begin(name).err().unwrap();
        assert!(matches!(refused, StepError::Name { length } if length == name.len()), "{name}");
    }
    for name in ["a", "Charge:1/2", &"x".repeat(64)] {
        called(&steps, name);
    }
}

#[test]
fn more_steps_than_are_kept_are_not_called() {
    let steps = Steps::new(&KeptSteps::Stored(Some("{\"before\":1}".into())));
    let running = [called(&steps, "running")];
    for number in 2..MAX_STEPS {
        assert!(poll(pin!(called(&steps, &number.to_string()).ended(raw("1")))).is_pending());
    }
    assert!(matches!(steps.begin("more"), Err(StepError::TooMany { .. })));
    assert!(matches!(steps.begin("before"), Ok(Begun::Before(_))));
    drop(running);
    called(&steps, "more");
}

#[test]
fn a_result_that_is_too_large_says_so_and_costs_the_others_nothing() {
    let steps = Steps::new(&KeptSteps::Stored(None));
    let large = raw(&format!("\"{}\"", "x".repeat(MAX_STEP_BYTES)));
    let Poll::Ready(Err(error)) = poll(pin!(called(&steps, "large").ended(large))) else {
        panic!()
    };
    let StepError::TooLarge { bytes, .. } = &error else { panic!("{error}") };
    assert_eq!(*bytes, MAX_STEP_BYTES + "{\"large\":\"\"}".len());
    assert!(matches!(steps.begin("large"), Err(StepError::Twice { .. })), "it has run");
    assert!(poll(pin!(called(&steps, "small").ended(raw("1")))).is_pending());
    assert_eq!(steps.take().as_deref(), Some("{\"small\":1}"));
}

#[test]
fn steps_that_cannot_be_read_are_not_called() {
    let steps = Steps::new(&KeptSteps::Stored(Some("charge".into())));
    assert!(matches!(steps.begin("charge"), Err(StepError::Unreadable)));
}

#[test]
fn a_call_without_a_claim_keeps_steps_for_itself() {
    let steps = Steps::new(&KeptSteps::NotStored);
    assert!(matches!(poll(pin!(called(&steps, "one").ended(raw("1")))), Poll::Ready(Ok(()))));
    assert!(matches!(steps.begin("one"), Err(StepError::Twice { .. })));
}

#[test]
fn results_are_an_object_of_names_and_are_kept_byte_for_byte() {
    let mut results = Results::default();
    results.insert("ship".into(), raw("null"));
    results.insert("charge".into(), raw("{\"id\": 1.0}"));
    let text = results.text().unwrap();
    assert_eq!(&*text, "{\"charge\":{\"id\": 1.0},\"ship\":null}");
    let again = Results::parse(Some(&text)).unwrap();
    assert_eq!(again.get("charge").unwrap().get(), "{\"id\": 1.0}");
    assert_eq!((again.len(), again.get("bill").is_none()), (2, true));
}

#[test]
fn a_text_that_is_not_an_object_is_unreadable() {
    for text in ["", "[]", "{\"charge\":", "1"] {
        let read = Results::parse(Some(&text.into()));
        assert!(matches!(read, Err(StepError::Unreadable)), "{text}");
    }
}
