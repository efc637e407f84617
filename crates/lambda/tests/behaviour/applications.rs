//! Keys that belong to another application or to an enclosing call.

use std::time::Duration;

use lambda_idempotency::{
    Call, ConfigError, Failure, Function, Idempotency, Operation, RunContext, RunError,
    source::{DivertedRecord, Sqs},
};
use serde_json::json;

use crate::support::{World, batch, diagnostic, in_child, order};

pub(crate) fn process() -> Operation {
    Operation::new("process").key("id")
}

impl World {
    fn application(&self, name: &str) -> Idempotency {
        self.idempotency().application(name)
    }
}

/// The functions of billing and shipping, with these settings of shipping.
fn functions(world: &World, source: Sqs, shipping: &Operation) -> [Function; 2] {
    let billing = world.application("billing").on(Sqs::new(), &process(), world.handler());
    let shipping = world.application("shipping").on(source, shipping, world.handler());
    [billing.unwrap(), shipping.unwrap()]
}
/// Billing and shipping share a table, and both have an operation `process` with the same keys.
#[tokio::test]
async fn work_of_another_application_does_not_answer_a_delivery() {
    let world = World::new();
    let [billing, shipping] = functions(&world, Sqs::new(), &process());
    let event = batch([order("m-1", "a", "")]);
    assert!(world.returned(&billing, &event).await.is_empty());
    for _ in 0..2 {
        assert_eq!(world.returned(&shipping, &event).await, ["m-1"], "it is returned");
        assert!(world.returned(&billing, &event).await.is_empty(), "billing still answers");
    }
    world.ledger.assert_once("a");
    world.clock.advance(Duration::from_hours(25));
    let returned = world.returned(&shipping, &event).await;
    assert!(returned.is_empty(), "an expired record belongs to no application");
    assert_eq!(world.ledger.total(), 2);
}
/// Policies that acknowledge unprocessed records do not apply to records of other applications.
#[tokio::test]
async fn no_policy_acknowledges_a_key_of_another_application() {
    let world = World::new();
    let discards = Sqs::new().divert(async |_: DivertedRecord| Ok::<_, Failure>(()));
    let [billing, shipping] = functions(&world, discards, &process());
    for (message, id, action) in
        [("m-1", "failed", "fail"), ("m-2", "given up", "give up"), ("m-3", "stopped", "sleep")]
    {
        for (function, action) in [(&billing, action), (&shipping, "")] {
            let event = batch([order(message, id, action)]);
            assert_eq!(world.returned(function, &event).await, [message], "{id}");
        }
    }
    assert_eq!(world.ledger.total(), 0);
}
#[tokio::test]
async fn the_refusal_names_both_applications_and_the_remedy() {
    let world = World::instant();
    let payment = json!({ "id": "s3cr3t" });
    world.run(&world.application("billing"), &process(), &payment, 1).await.unwrap();
    for (other, ours) in
        [(world.application("shipping"), Some("shipping")), (world.idempotency(), None)]
    {
        let refused = world.run(&other, &process(), &payment, 2).await.unwrap_err();
        let RunError::Foreign(foreign) = &refused else { panic!("{refused:?}") };
        assert_eq!((&*foreign.operation, &*foreign.theirs), ("process", "billing"));
        assert_eq!(foreign.ours.as_deref(), ours);
        assert!(!refused.is_transient());
        let (kind, text) = diagnostic(refused.into());
        assert_eq!(kind, "Idempotency.Foreign");
        let (this, same) = match ours {
            Some(_) => (
                "application `shipping`",
                "if it is the same work (a function that was renamed or replaced, a second one beside it), let",
            ),
            None => ("an application without a name", "if it is the same work, let"),
        };
        assert_eq!(
            text,
            format!(
                "the key belongs to application `billing`, and this is {this}: both have an \
                 operation `process` in one table. If that is different work, give one of them \
                 another operation name or table; {same} this one have the other's name: \
                 `.application(\"billing\")` or IDEMPOTENCY_APPLICATION"
            )
        );
    }
}

/// A renamed function, or both functions of a blue/green deployment, can keep one name.
#[tokio::test]
async fn two_functions_with_the_same_name_are_one_application() {
    let world = World::new();
    let old = world.application("orders").on(Sqs::new(), &process(), world.handler()).unwrap();
    let new = world.application("orders-v2").application("orders");
    let new = new.on(Sqs::new(), &process(), world.handler()).unwrap();
    let event = batch([order("m-1", "a", "")]);
    for function in [&old, &new, &old] {
        assert!(world.returned(function, &event).await.is_empty());
    }
    assert_eq!(world.ledger.total(), 1);
}

/// Earlier versions and Powertools write records without an application name.
#[tokio::test]
async fn records_without_an_application_answer_all_applications() {
    let (world, payment) = (World::instant(), json!({ "id": "a" }));
    world.run(&world.idempotency(), &process(), &payment, 1).await.unwrap();
    let run = world.run(&world.application("billing"), &process(), &payment, 2).await;
    assert_eq!(run.unwrap().result, 1);
}
#[tokio::test]
async fn an_invalid_application_name_is_refused() {
    let world = World::new();
    let bad = || world.application("two words");
    let refused = |error: &ConfigError| matches!(error, ConfigError::Name(_));
    assert!(refused(&bad().on(Sqs::new(), &process(), world.handler()).err().unwrap()));
    let run = world.run(&bad(), &process(), &json!({ "id": 1 }), 1).await;
    assert!(matches!(run, Err(RunError::Config(error)) if refused(&error)));
    assert!(
        bad().application("shop").on(Sqs::new(), &process(), world.handler()).is_ok(),
        "a valid name replaces it"
    );
}

#[test]
fn the_application_is_named_by_the_variable_or_else_by_the_function() {
    for (function, variable, expected) in [
        (None, None, ""),
        (Some("orders-v2"), None, "orders-v2"),
        (Some("orders-v2"), Some("orders"), "orders"),
        (Some("orders-v2"), Some(""), "refused"),
    ] {
        in_child("applications::child", 1, |child| {
            child.envs(function.map(|name| ("AWS_LAMBDA_FUNCTION_NAME", name)));
            child.envs(variable.map(|name| ("IDEMPOTENCY_APPLICATION", name)));
            child.env("BEHAVIOUR_EXPECTED", expected);
        });
    }
}

#[tokio::test]
#[ignore = "run by `the_application_is_named_by_the_variable_or_else_by_the_function`"]
async fn child() {
    let (world, payload) = (World::instant(), json!({ "id": 1 }));
    let run = world.run(&world.idempotency(), &process(), &payload, 1).await;
    let expected = std::env::var("BEHAVIOUR_EXPECTED").unwrap();
    if expected == "refused" {
        let text = run.unwrap_err().to_string();
        assert!(text.contains("IDEMPOTENCY_APPLICATION"), "{text}");
        return;
    }
    run.unwrap();
    // The refusal names the application of the record.
    match world.run(&world.application("somebody-else"), &process(), &payload, 1).await {
        Err(RunError::Foreign(foreign)) => assert_eq!(&*foreign.theirs, expected),
        other => assert!(expected.is_empty() && other.unwrap().replayed),
    }
}
/// Otherwise the call would wait for itself until its deadline, at each delivery.
#[tokio::test]
async fn a_call_inside_itself_fails_at_once() {
    let world = World::instant();
    let idempotency = world.idempotency();
    let inner = idempotency.clone();
    let charge = async |id: u32| {
        let handler = async |_: Call| Ok::<_, Failure>(id);
        inner.run(&process(), &json!({ "id": id }), &RunContext::without_deadline(), handler).await
    };
    let nested = async |_: Call| {
        tokio::task::yield_now().await;
        let refused = charge(1).await.unwrap_err();
        assert!(matches!(&refused, RunError::Nested { operation } if &**operation == "process"));
        assert!(!refused.is_transient());
        Ok::<_, Failure>(charge(2).await?.result)
    };
    let run = idempotency
        .run(&process(), &json!({ "id": 1 }), &RunContext::without_deadline(), nested)
        .await
        .unwrap();
    assert_eq!(run.result, 2, "another key is accepted");
    assert_eq!(world.store.write_calls(), 4, "two keys, each claimed and completed");
    // After the outer call has ended, the call is an ordinary duplicate.
    assert!(charge(1).await.unwrap().replayed);
}

/// A call on another store, or after a panic, is not a call inside itself.
#[tokio::test]
async fn a_call_on_another_store_or_after_a_panic_is_not_nested() {
    let world = World::instant();
    let (idempotency, elsewhere) = (world.idempotency(), World::instant().idempotency());
    let payload = json!({ "id": 1 });
    let context = RunContext::without_deadline();
    let charged = async |_: Call| Ok::<_, Failure>(1);
    let across = async |_: Call| {
        let run = elsewhere.run(&process(), &payload, &context, charged).await?;
        Ok::<_, Failure>(run.result)
    };
    idempotency.run(&process(), &payload, &context, across).await.unwrap();

    let payload = json!({ "id": 2 });
    let panics = async |_: Call| -> Result<u32, Failure> { panic!("no luck") };
    idempotency.run(&process(), &payload, &context, panics).await.unwrap_err();
    assert_eq!(world.run(&idempotency, &process(), &payload, 1).await.unwrap().result, 1);
}
