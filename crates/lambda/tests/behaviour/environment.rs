//! Variables of the environment, in processes of their own: values that cannot be meant stop the start.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

use lambda_idempotency::{ConfigError, Idempotency, MemoryStore, Operation, source::Sqs};

use crate::{
    secrecy::capture::Captured,
    support::{World, batch, in_child, order},
};

const VARIABLES: [&str; 3] =
    ["IDEMPOTENCY_APPLICATION", "IDEMPOTENCY_DISABLED", "IDEMPOTENCY_LOG_ERROR_MESSAGES"];

#[track_caller]
fn assert_in_child(variable: &str, value: impl AsRef<OsStr>, expected: &str) {
    in_child("environment::child", 1, |child| {
        child.env(variable, value).env("BEHAVIOUR_EXPECTED", expected);
    });
}

#[test]
fn a_value_that_is_not_text_is_refused() {
    for variable in VARIABLES {
        assert_in_child(variable, OsStr::from_bytes(b"orderId\xff"), "is not valid UTF-8 text");
    }
}

#[test]
fn a_switch_is_on_or_off() {
    let switch = "IDEMPOTENCY_LOG_ERROR_MESSAGES";
    for value in ["", "0", "false", "False", "1", "TRUE"] {
        assert_in_child(switch, value, "");
    }
    for (value, shown) in [("0", "no"), ("1", "yes")] {
        in_child("environment::messages", 1, |child| {
            child.env(switch, value).env("BEHAVIOUR_EXPECTED", shown);
        });
    }
    for value in ["yes", "on", "2", " 1"] {
        assert_in_child(switch, value, "set it to `1` or `true`");
    }
}

/// It is for whoever tests a function, and says nothing about one that is deployed.
#[test]
fn the_variable_of_a_test_harness_stops_no_function() {
    for value in ["1", "yes", ""] {
        assert_in_child("IDEMPOTENCY_REPORT_EFFECTS", value, "");
    }
}

/// Whether the log has the message of a handler's error.
#[tokio::test]
#[ignore = "run by the test above, with another environment"]
async fn messages() {
    let (world, captured) = (World::new(), Captured::default());
    let guard = captured.start();
    let idempotency = Idempotency::new(world.store.clone()).with_clock(world.clock.clone());
    let place = Operation::new("place").key("id");
    let function = idempotency.on(Sqs::new(), &place, world.handler()).unwrap();
    assert_eq!(world.returned(&function, &batch([order("m-1", "ann", "fail")])).await, ["m-1"]);
    drop(guard);
    let is_shown = captured.text().contains("ann has no luck");
    assert_eq!(if is_shown { "yes" } else { "no" }, std::env::var("BEHAVIOUR_EXPECTED").unwrap());
}

#[test]
fn a_deployed_function_that_keeps_its_records_in_memory_says_so() {
    for (stream, said) in [("2026/11/29/[1]0f", "yes"), ("local", "no")] {
        in_child("environment::memory", 1, |child| {
            child.env("AWS_LAMBDA_FUNCTION_NAME", "orders").env("BEHAVIOUR_EXPECTED", said);
            child.env("AWS_LAMBDA_LOG_STREAM_NAME", stream);
        });
    }
}

#[test]
#[ignore = "run by the test above, with another environment"]
fn memory() {
    let captured = Captured::default();
    let guard = captured.start();
    let _ = Idempotency::new(std::sync::Arc::new(MemoryStore::new()));
    let world = World::new();
    let _ = Idempotency::new(world.store.clone());
    drop(guard);
    let times = captured.text().matches("the idempotency records are in memory").count();
    let expected = std::env::var("BEHAVIOUR_EXPECTED").unwrap();
    assert_eq!(times, usize::from(expected == "yes"));
}

/// Builds a function, which fails with the expected text or, without one, does not.
#[test]
#[ignore = "run by the tests above, with another environment"]
fn child() {
    let expected = std::env::var("BEHAVIOUR_EXPECTED").unwrap();
    let world = World::new();
    let operation = Operation::new("place").key("id");
    let built: Result<_, ConfigError> =
        world.idempotency().on(Sqs::new(), &operation, world.handler());
    match built {
        Ok(_) => assert_eq!(expected, ""),
        Err(error) => {
            let text = error.to_string();
            assert!(!expected.is_empty() && text.contains(&expected), "{text}");
            let named = VARIABLES.iter().filter(|variable| text.contains(*variable));
            assert_eq!(named.count(), 1, "{text}");
            assert!(!text.contains("orderId") && !text.contains('\u{fffd}'), "{text}");
        }
    }
}

#[test]
fn with_the_switch_of_the_environment_nothing_is_claimed_and_sources_are_answered_as_before() {
    in_child("environment::disabled::", 5, |child| {
        child.env("IDEMPOTENCY_DISABLED", "1");
    });
}

/// Without protection, each delivery is processed, and everything else is as with it.
mod disabled {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use lambda_idempotency::{
        Call, Operation,
        source::{DivertReason, Invoke, Sqs},
        store::StoreErrorKind,
    };
    use lambda_idempotency_testkit::faults::Fault;
    use serde_json::{Value, json};

    use crate::{
        diverting_failures::Taken,
        metrics::Lines,
        support::{FIFO, World, batch, grouped, order, with_body},
    };

    /// A world whose store refuses each call.
    fn world() -> World {
        let world = World::new();
        world.store.inject(Fault::refuse(StoreErrorKind::Unavailable).always());
        world
    }

    fn place() -> Operation {
        Operation::new("place").key("id")
    }

    #[tokio::test]
    #[ignore = "run by the test above"]
    async fn groups_keep_their_order_and_return_as_a_whole() {
        let world = world();
        let function = world.on(Sqs::new(), &place());
        let in_group =
            |message, id, action, group| grouped(order(message, id, action), FIFO, group);
        let event = batch([
            in_group("m-1", "a", "", "g"),
            in_group("m-2", "b", "fail", "g"),
            in_group("m-3", "c", "", "g"),
            in_group("m-4", "d", "", "h"),
        ]);
        for times in 1..=2 {
            assert_eq!(world.returned(&function, &event).await, ["m-2", "m-3"]);
            let executed = ["a", "c", "d"].map(|id| world.ledger.executed(id));
            assert_eq!(executed, [times, 0, times]);
        }
    }

    #[tokio::test]
    #[ignore = "run by the test above"]
    async fn permanent_failures_are_diverted() {
        let (world, taken) = (world(), Taken::default());
        let source = Sqs::new().divert(taken.sink());
        let function = world.on(source, &place());
        let event = batch([order("m-1", "a", "give up")]);
        for times in 1..=2 {
            assert!(world.returned(&function, &event).await.is_empty());
            assert_eq!(taken.records().len(), times);
        }
    }

    /// The sink fails permanently. That does not count as a failure of a handler.
    #[tokio::test]
    #[ignore = "run by the test above"]
    async fn a_bad_record_that_cannot_be_diverted_is_returned() {
        let (world, taken) = (world(), Taken::default());
        let source = Sqs::new().divert(taken.sink());
        let function = world.on(source, &place());
        let event = batch([with_body("m-1", "{}")]);
        taken.refuse(1);
        assert_eq!(world.returned(&function, &event).await, ["m-1"]);
        assert!(world.returned(&function, &event).await.is_empty());
        let reason = &taken.records()[0].reason;
        assert!(matches!(reason, DivertReason::BadRecord(_)), "{reason:?}");
    }

    #[tokio::test]
    #[ignore = "run by the test above"]
    async fn metrics_say_that_nothing_was_protected() {
        let (world, lines) = (world(), Lines::default());
        let idempotency = world.idempotency().with_observer(lines.metrics());
        let function = idempotency.on(Sqs::new(), &place(), world.handler()).unwrap();
        world.invoke(&function, &batch([order("m-1", "a", "")])).await.unwrap();
        let document = &lines.take()[0];
        assert_eq!((&document["unprotected"], &document["records"]), (&json!(1.0), &json!(1.0)));
        assert_eq!(document["store_calls"], Value::Null);
    }

    #[tokio::test]
    #[ignore = "run by the test above"]
    async fn no_answer_is_a_replay() {
        let world = world();
        let number = AtomicUsize::new(0);
        let number = std::sync::Arc::new(number);
        let charge = async move |_: Value, _: Call| {
            Ok::<_, std::io::Error>(number.fetch_add(1, Ordering::Relaxed))
        };
        let function = world.with_handler(Invoke::new(), &place(), charge);
        for number in 0..2 {
            let answer = world.invoke(&function, &json!({ "id": "a" })).await.unwrap();
            assert_eq!(answer, number);
            let (idempotency, count) = (world.idempotency(), Operation::new("count").key("id"));
            let run = world.run(&idempotency, &count, &json!({ "id": "a" }), number).await.unwrap();
            assert_eq!((run.result, run.replayed, run.recorded), (number, false, false));
        }
    }
}
