//! Mistakes in operations are found when the function starts.

use std::time::Duration;

use lambda_idempotency::{
    Call, ConfigError, OnMissingKey, Operation, RunContext, RunError,
    keys::Functions,
    powertools::PowertoolsKeys,
    producer::{ExpressionUse, KeySpecError},
    record,
    source::{EventBridge, Invoke, Sns, Sqs},
};
use serde_json::Value;

use crate::support::{World, batch, with_body};

async fn nothing(_: Value, _: Call) -> Result<(), std::io::Error> {
    Ok(())
}

#[test]
fn names_have_1_to_128_characters_without_control_characters_and_hash_signs() {
    let longest = "é".repeat(128);
    for name in ["a", "place order", "Bestellung/é", " ", longest.as_str()] {
        assert_eq!(Operation::new(name).check(), Ok(()), "{name}");
        assert_eq!(Operation::new(name).name(), name);
    }
    for name in ["", "a#b", "a\nb", "a\0", &"x".repeat(129)] {
        let error = Operation::new(name).check().unwrap_err();
        assert_eq!(error, ConfigError::KeySpec(KeySpecError::Name { name: name.into() }));
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn two_operations_of_a_function_cannot_share_a_name() {
    let idempotency = World::new().idempotency();
    let built = idempotency
        .function()
        .on(Sqs::new(), &Operation::new("place").key("id"), nothing)
        .on(Sns::new(), &Operation::new("place").key("orderId"), nothing)
        .build();
    let refused = built.err().unwrap();
    assert_eq!(refused, ConfigError::DuplicateName { name: "place".into() });
    assert!(refused.to_string().contains("`.sources(..)`"), "{refused}");
}

#[test]
fn a_function_needs_a_source() {
    let idempotency = World::new().idempotency();
    let built = idempotency.function().otherwise(|_| async { Ok::<_, std::io::Error>(()) }).build();
    assert_eq!(built.err(), Some(ConfigError::NoSource));
}

#[test]
fn errors_in_expressions_are_marked_with_a_caret() {
    for (operation, what, place) in [
        (Operation::new("place").key("order.[id"), "the key of operation `place` has a mistake", 9),
        (
            Operation::new("place").key(record("nope(id)")),
            "the key of operation `place` has a mistake",
            4,
        ),
        (Operation::new("place").key(""), "the key of operation `place` has a mistake", 0),
        (
            Operation::new("place").fingerprint("a ="),
            "the fingerprint of operation `place` has a mistake",
            2,
        ),
    ] {
        let text = operation.check().unwrap_err().to_string();
        assert!(text.starts_with(what), "{text}");
        assert_eq!(text.lines().last().unwrap().find('^'), Some(place + 2), "{text}");
        let debug = format!("{:?}", operation.check().unwrap_err());
        assert_eq!(debug, text, "`main` prints the debug text of an error");
    }
}

/// Operations are checked wherever they are used.
#[tokio::test]
async fn operations_are_checked_wherever_they_are_used() {
    let world = World::new();
    let idempotency = world.idempotency();
    let bad = || Operation::new("place").key("a.");
    let is_expression = |error: &ConfigError| {
        matches!(error, ConfigError::KeySpec(KeySpecError::Expression { .. }))
    };
    assert!(is_expression(&idempotency.on(Sqs::new(), &bad(), nothing).err().unwrap()));
    assert!(is_expression(&idempotency.on(Sns::new(), &bad(), nothing).err().unwrap()));
    assert!(is_expression(&idempotency.on(EventBridge::new(), &bad(), nothing).err().unwrap()));
    assert!(is_expression(&idempotency.event::<Value>(bad()).err().unwrap()));
    let operation = bad();
    let run = idempotency.run(&operation, "x", RunContext::without_deadline(), |_| async {
        Ok::<_, std::io::Error>(1)
    });
    assert!(matches!(run.await, Err(RunError::Config(error)) if is_expression(&error)));
}

#[test]
fn a_retention_of_zero_is_refused() {
    let operation = Operation::new("place").retention(Duration::ZERO);
    assert_eq!(operation.check(), Err(ConfigError::Retention { operation: "place".into() }));
    assert_eq!(
        operation.retention(Duration::from_millis(1)).check(),
        Ok(()),
        "a later setting replaces it"
    );
}

/// With `.powertools(..)`, the expression would not know the function, or would call Powertools' function of
/// the same name.
#[test]
fn functions_that_no_expression_can_call_are_refused() {
    let functions = || Functions::standard().with("lower", 1, |_| Err("none"));
    let powertools = PowertoolsKeys::python("orders-fn.app.process");
    let without_key = Operation::new("place").key_functions(functions()).check().unwrap_err();
    assert!(matches!(without_key, ConfigError::Functions { .. }), "{without_key}");
    let external =
        Operation::new("place").key("id").powertools(powertools).key_functions(functions());
    let external = external.check().unwrap_err();
    assert!(
        matches!(external, ConfigError::KeySpec(KeySpecError::PowertoolsFunctions { .. })),
        "{external}"
    );
    for error in [without_key, external] {
        assert!(
            error.to_string().contains("`place`") && error.to_string().contains(".key_functions(")
        );
    }
    let by_key = Operation::new("place").key("lower(id)").key_functions(functions());
    let by_fingerprint =
        Operation::new("place").fingerprint("lower(id)").key_functions(functions());
    assert_eq!([by_key.check(), by_fingerprint.check()], [Ok(()), Ok(())]);
}

/// A record without a default key is one that the operation is not for, such as a batch of SQS at `.invoke(..)`: to
/// acknowledge it would lose it.
#[test]
fn records_are_skipped_only_where_an_expression_finds_no_key() {
    let skipping = |name| Operation::new(name).on_missing_key(OnMissingKey::Skip);
    for (name, operation) in [("a", skipping("a")), ("b", skipping("b").fingerprint("id"))] {
        let error = operation.check().unwrap_err();
        assert_eq!(error, ConfigError::SkipsWithoutKey { operation: name.into() });
        let world = World::new();
        let built = world.idempotency().on(Invoke::new(), &operation, world.handler());
        assert_eq!(built.unwrap_err(), error);
    }
    let as_powertools = skipping("d").powertools(PowertoolsKeys::python("f"));
    for operation in [skipping("c").key("id"), as_powertools.key("id")] {
        assert_eq!(operation.check(), Ok(()));
    }
    assert_eq!(Operation::new("e").on_missing_key(OnMissingKey::RunUnprotected).check(), Ok(()));
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

/// Runs `child` in a separate process, because all tests of this process share its environment.
fn in_child(variable: Option<&str>) {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "operations::child", "--ignored", "--test-threads=1"]);
    child.env_remove("BEHAVIOUR_ORDER_KEY");
    child.envs(variable.map(|value| ("BEHAVIOUR_ORDER_KEY", value)));
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{variable:?}: {text}");
}

#[test]
fn a_key_can_come_from_the_environment() {
    for variable in [None, Some("orderId"), Some(" record: messageId "), Some("order.["), Some("")]
    {
        in_child(variable);
    }
}

#[tokio::test]
#[ignore = "run by `a_key_can_come_from_the_environment`, with another environment"]
async fn child() {
    let operation = Operation::new("place").key_from_env("BEHAVIOUR_ORDER_KEY");
    let fallback = operation.clone().key("id");
    match std::env::var("BEHAVIOUR_ORDER_KEY").as_deref() {
        Ok("orderId") => {
            assert_eq!(executed(operation, &same_order()).await, 1);
            let other = fallback.clone().fingerprint("a.").check().unwrap_err();
            assert!(
                matches!(
                    other,
                    ConfigError::KeySpec(KeySpecError::Expression {
                        what: ExpressionUse::Fingerprint,
                        ..
                    })
                ),
                "{other}"
            );
            assert_eq!(
                executed(fallback, &same_order()).await,
                1,
                "the variable takes precedence over the default"
            );
        }
        Ok(" record: messageId ") => {
            assert_eq!(executed(operation, &same_order()).await, 2);
            assert_eq!(executed(fallback, &same_order()).await, 2);
        }
        Ok(_) => {
            for operation in [operation, fallback] {
                let error = operation.check().unwrap_err();
                assert!(matches!(error, ConfigError::VariableExpression { .. }), "{error}");
                assert!(error.to_string().contains("BEHAVIOUR_ORDER_KEY"), "{error}");
            }
        }
        Err(_) => {
            let error = operation.check().unwrap_err().to_string();
            assert!(error.contains("BEHAVIOUR_ORDER_KEY") && error.contains("`place`"), "{error}");
            assert_eq!(executed(fallback, &same_order()).await, 2);
        }
    }
}

/// Two messages of one order, with different ids.
fn same_order() -> Value {
    batch([
        with_body("m-1", r#"{"orderId":"o","id":"1"}"#),
        with_body("m-2", r#"{"orderId":"o","id":"2"}"#),
    ])
}

async fn executed(operation: Operation, event: &Value) -> usize {
    let world = World::new();
    let function = world.idempotency().on(Sqs::new(), &operation, world.handler()).unwrap();
    assert!(world.returned(&function, event).await.is_empty());
    world.ledger.total()
}
