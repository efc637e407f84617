//! Subkeys of calls without an idempotency key: they differ between customers.

use std::collections::BTreeSet;

use lambda_idempotency::{
    Call, Failure, Idempotency, Operation, RunContext,
    policy::OnMissingKey,
    source::{RabbitMq, Sqs},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    support::{Noted, World, batch, order},
    support_streams::{of_rabbit_mq, rabbit_mq},
};

fn charge(name: &str) -> Operation {
    Operation::new(name).key("paymentId").on_missing_key(OnMissingKey::RunUnprotected)
}

async fn subkey_of(
    idempotency: &Idempotency,
    tenant: Option<&str>,
    name: &str,
    payload: &Value,
) -> String {
    let mut context = Context::default();
    context.tenant_id = tenant.map(str::to_owned);
    let subkey = async |call: Call| Ok::<_, Failure>(call.subkey("charge"));
    idempotency.run(&charge(name), payload, &context, subkey).await.unwrap().result
}

#[tokio::test]
async fn without_a_key_subkeys_differ_by_payload_tenant_and_operation() {
    let world = World::new();
    let idempotency = world.idempotency();
    let (ann, bob) = (json!({ "customer": "ann" }), json!({ "customer": "bob" }));
    let first = subkey_of(&idempotency, None, "charge", &ann).await;
    assert_eq!(
        subkey_of(&idempotency, None, "charge", &ann).await,
        first,
        "the same in each attempt"
    );
    assert_ne!(subkey_of(&idempotency, None, "charge", &bob).await, first);
    assert_ne!(subkey_of(&idempotency, Some("acme"), "charge", &ann).await, first);
    assert_ne!(subkey_of(&idempotency, None, "refund", &ann).await, first);
    let operation = charge("charge");
    let run =
        idempotency.run(&operation, &ann, &RunContext::without_deadline(), async |call: Call| {
            Ok::<_, Failure>(call.subkey("charge"))
        });
    assert_eq!(run.await.unwrap().result, first);
}

/// Those of RabbitMQ have no id, and those of SQS have.
#[tokio::test]
async fn records_without_a_key_have_different_subkeys() {
    let noted = Noted::new();
    let subkeys = || {
        noted.handler(|_: Value, call| {
            assert_eq!(call.key_hash(), None);
            call.subkey("charge")
        })
    };
    let world = World::new();
    let posted = ["ann", "bob"]
        .map(|name| of_rabbit_mq(Value::Null, json!({ "customer": name }).to_string()));
    let operation = charge("charge");
    for (function, event) in [
        (world.with_handler(RabbitMq::new(), &operation, subkeys()), rabbit_mq(posted)),
        (
            world.with_handler(Sqs::new(), &operation, subkeys()),
            batch([order("m-1", "a", ""), order("m-2", "a", "")]),
        ),
    ] {
        for _ in 0..2 {
            world.invoke(&function, &event).await.unwrap();
        }
        let subkeys = noted.take();
        let distinct: BTreeSet<_> = subkeys.iter().collect();
        assert_eq!((subkeys.len(), distinct.len()), (4, 2));
    }
}
