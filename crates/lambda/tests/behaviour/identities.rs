//! The parts of a key that the expression does not select: operation, tenant, source.

use lambda_idempotency::{
    Failure, Operation,
    clock::Timestamp,
    keys::KeyFormat,
    source::{Sns, Sqs},
};
use serde_json::{Value, json};

use crate::support::{World, batch, grouped, notification, order, serve};

/// Delivers an event for one tenant.
async fn deliver(
    world: &World,
    function: &lambda_idempotency::Function,
    event: &Value,
    tenant: Option<&str>,
) {
    let mut context = world.context();
    context.tenant_id = tenant.map(ToOwned::to_owned);
    let event = event.to_string();
    world.clock.drive(serve(function.clone(), &event, context)).await.unwrap();
}

#[tokio::test]
async fn tenants_never_share_a_key() {
    let by_id = || Operation::new("place").key("id");
    for operation in [
        by_id(),
        Operation::new("place"),
        by_id().key_format(KeyFormat::Readable),
        by_id().key_format(KeyFormat::secret("4f1f5c0e2b7d49a8").unwrap()),
    ] {
        let world = World::new();
        let function = world.on(Sqs::new(), &operation);
        let event = batch([order("m-1", "a", "")]);
        for (tenant, executed) in [
            (None, 1),
            (Some("t-1"), 2),
            (Some("t-2"), 3),
            (Some("t-1"), 3),
            (None, 3),
            (Some(""), 4),
        ] {
            deliver(&world, &function, &event, tenant).await;
            assert_eq!(world.ledger.executed("a"), executed, "{tenant:?}");
        }
    }
}

/// `run` takes the tenant from the invocation's context.
#[tokio::test]
async fn calls_of_run_belong_to_the_tenant_of_their_invocation() {
    let world = World::new();
    let [charge, refund] = ["charge", "refund"].map(|name| Operation::new(name).key("id"));
    let mut seen = 0;
    for (operation, tenant, value) in [
        (&charge, None, 1),
        (&charge, Some("t-1"), 2),
        (&charge, Some("t-2"), 3),
        (&charge, Some("t-1"), 2),
        (&refund, Some("t-1"), 4),
        (&charge, Some(""), 5),
        (&charge, None, 1),
    ] {
        let mut context = world.context();
        context.tenant_id = tenant.map(ToOwned::to_owned);
        let (idempotency, payload) = (world.idempotency(), json!({ "id": "a" }));
        let fresh = seen + 1;
        let deadline = Timestamp::from_millis(context.deadline);
        let running = idempotency.run(operation, &payload, &context, |call| async move {
            assert!(call.handler_deadline().is_some_and(|stop| stop <= deadline));
            Ok::<_, Failure>(fresh)
        });
        let run = world.clock.drive(running).await.unwrap();
        assert_eq!((run.result, run.replayed), (value, value <= seen), "{tenant:?}");
        seen = seen.max(value);
    }
    assert_eq!(seen, 5);
}

/// A message id is unique only within its source.
#[tokio::test]
async fn queues_and_sources_do_not_share_identities() {
    let world = World::new();
    let idempotency = || world.idempotency();
    let sqs = idempotency().on(Sqs::new(), &Operation::new("place"), world.handler()).unwrap();
    let sns = idempotency().on(Sns::new(), &Operation::new("place"), world.handler()).unwrap();
    let elsewhere = "arn:aws:sqs:eu-west-1:111122223333:elsewhere";
    for _ in 0..2 {
        deliver(&world, &sqs, &batch([order("1", "a", "")]), None).await;
        deliver(&world, &sqs, &batch([grouped(order("1", "a", ""), elsewhere, "")]), None).await;
        deliver(&world, &sns, &notification("1", r#"{"id":"a"}"#), None).await;
    }
    assert_eq!(world.ledger.executed("a"), 3);
}

/// With an expression, an order has the same key from each source.
#[tokio::test]
async fn two_functions_with_the_same_operation_share_its_keys() {
    let world = World::new();
    let idempotency = || world.idempotency();
    let place = Operation::new("place").key("id");
    let sqs = idempotency().on(Sqs::new(), &place, world.handler()).unwrap();
    let sns = idempotency().on(Sns::new(), &place, world.handler()).unwrap();
    deliver(&world, &sqs, &batch([order("1", "a", "")]), None).await;
    deliver(&world, &sns, &notification("2", r#"{"id":"a"}"#), None).await;
    world.ledger.assert_once("a");
}

/// The name of the function and the request id are not parts of a key.
#[tokio::test]
async fn renaming_the_function_does_not_change_keys() {
    let world = World::new();
    let function = world.on(Sqs::new(), &Operation::new("place").key("id"));
    let event = batch([order("m-1", "a", "")]).to_string();
    for name in ["before", "after"] {
        let mut context = world.context();
        context.invoked_function_arn = format!("arn:aws:lambda:eu-west-1:1:function:{name}");
        context.request_id = name.to_owned();
        context.deadline = 0;
        world.clock.drive(serve(function.clone(), &event, context)).await.unwrap();
    }
    world.ledger.assert_once("a");
}
