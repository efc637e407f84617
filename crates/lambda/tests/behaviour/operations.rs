//! Mistakes in operations are found when the function starts.

use std::time::Duration;

use lambda_idempotency::{
    ConfigError, Operation, RunError,
    keys::Functions,
    powertools::PowertoolsKeys,
    record,
    source::{EventBridge, Invoke, Sns, Sqs},
};
use serde_json::Value;

use crate::support::{World, nothing};

#[test]
fn names_have_1_to_128_characters_without_control_characters_and_hash_signs() {
    let longest = "é".repeat(128);
    for name in ["a", "place order", "Bestellung/é", " ", longest.as_str()] {
        assert_eq!(Operation::new(name).check(), Ok(()), "{name}");
        assert_eq!(Operation::new(name).name(), name);
    }
    for name in ["", "a#b", "a\nb", "a\0", &"x".repeat(129)] {
        let error = Operation::new(name).check().unwrap_err();
        assert!(matches!(error, ConfigError::Name(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("{name:?}")) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn a_function_needs_a_source() {
    let idempotency = World::new().idempotency();
    let built = idempotency.function().otherwise(|_| async { Ok::<_, std::io::Error>(()) }).build();
    let refused = built.unwrap_err();
    assert!(matches!(refused, ConfigError::Source(_)), "{refused}");
    assert!(refused.to_string().contains("no source; add one with `.on("), "{refused}");
}

#[test]
fn errors_in_expressions_are_marked_with_a_caret() {
    let built = |source: Sqs, operation| {
        World::new().idempotency().on(source, &operation, nothing).unwrap_err()
    };
    let place = || Operation::new("place");
    let of_key = |path| (place().key(path).check().unwrap_err(), "the key");
    for ((error, what), place) in [
        (of_key("order.[id"), 9),
        (of_key(""), 0),
        ((place().fingerprint("a =").check().unwrap_err(), "the fingerprint"), 2),
        ((built(Sqs::new().key(record("nope(id)")), place()), "sqs: the key"), 4),
    ] {
        let (text, what) =
            (error.to_string(), format!("{what} of operation `place` has a mistake"));
        assert!(text.starts_with(&what), "{text}");
        assert_eq!(text.lines().last().unwrap().find('^'), Some(place + 2), "{text}");
        assert_eq!(format!("{error:?}"), text, "`main` prints the debug text of an error");
    }
}

/// Operations are checked wherever they are used.
#[tokio::test]
async fn operations_are_checked_wherever_they_are_used() {
    let world = World::new();
    let idempotency = world.idempotency();
    let bad = || Operation::new("place").key("a.");
    let is_expression = |error: &ConfigError| matches!(error, ConfigError::Key(text) if text.contains("has a mistake"));
    assert!(is_expression(&idempotency.on(Sqs::new(), &bad(), nothing).err().unwrap()));
    assert!(is_expression(&idempotency.on(Sns::new(), &bad(), nothing).err().unwrap()));
    assert!(is_expression(&idempotency.on(EventBridge::new(), &bad(), nothing).err().unwrap()));
    assert!(is_expression(&idempotency.event::<Value>(&bad()).err().unwrap()));
    let run = world.run(&idempotency, &bad(), &Value::Null, 1).await;
    assert!(matches!(run, Err(RunError::Config(error)) if is_expression(&error)));
}

#[test]
fn a_retention_of_zero_is_refused() {
    let operation = Operation::new("place").retention(Duration::ZERO);
    let error = operation.check().unwrap_err();
    assert!(matches!(error, ConfigError::Setting(_)), "{error}");
    assert!(error.to_string().contains("operation `place` has a retention of zero"), "{error}");
    assert_eq!(
        operation.retention(Duration::from_millis(1)).check(),
        Ok(()),
        "a later setting replaces it"
    );
}

#[test]
fn a_retention_of_results_that_is_not_shorter_than_that_of_keys_is_refused() {
    let operation = Operation::new("place").retention(Duration::from_mins(10));
    for most in [10, 11] {
        let error = operation.clone().result_retention(Duration::from_mins(most)).check();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("`.result_retention(..)` has no effect"), "{error}");
    }
    assert_eq!(operation.result_retention(Duration::from_mins(9)).check(), Ok(()));
}

/// With `.powertools(..)`, the expression would not know the function, or would call Powertools' function of
/// the same name.
#[test]
fn functions_that_no_expression_can_call_are_refused() {
    let functions = || Functions::standard().with("lower", 1, |_| Err("none"));
    let powertools = PowertoolsKeys::python("orders-fn.app.process");
    let without_key = Operation::new("place").key_functions(functions());
    let on = |source: Invoke| World::new().idempotency().on(source, &without_key, nothing);
    assert_eq!(on(Invoke::new().key("lower(id)")).map(drop), Ok(()));
    assert_eq!(without_key.check(), Ok(()), "a source may have the expression");
    assert!(World::new().idempotency().event::<Value>(&without_key).is_err());
    let without_key = on(Invoke::new()).unwrap_err();
    let external =
        Operation::new("place").key("id").powertools(powertools).key_functions(functions());
    let external = external.check().unwrap_err();
    for (error, problem) in
        [(without_key, "no expression that could call them"), (external, "`.powertools(..)`")]
    {
        assert!(matches!(error, ConfigError::Key(_)), "{error}");
        let text = error.to_string();
        let parts = ["`place`", "`.key_functions(", problem];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let by_key = Operation::new("place").key("lower(id)").key_functions(functions());
    let by_fingerprint =
        Operation::new("place").fingerprint("lower(id)").key_functions(functions());
    assert_eq!([by_key.check(), by_fingerprint.check()], [Ok(()), Ok(())]);
}

/// A change discards the compiled expressions.
#[test]
fn a_changed_operation_is_checked_again() {
    let good = Operation::new("place").key("id");
    assert_eq!(good.check(), Ok(()));
    let bad = good.clone().key("a.");
    assert!(bad.check().is_err());
    assert_eq!(good.check(), Ok(()));
}
