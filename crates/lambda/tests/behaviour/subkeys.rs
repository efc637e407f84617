//! Subkeys of calls without an idempotency key: they differ between customers.

use std::sync::{Arc, Mutex};

use lambda_idempotency::{
    Call, Failure, Idempotency, OnMissingKey, Operation, RunContext,
    source::{RabbitMq, Sqs},
};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    support::{World, batch, order},
    support_streams::base64,
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
        idempotency.run(&operation, &ann, RunContext::without_deadline(), async |call: Call| {
            Ok::<_, Failure>(call.subkey("charge"))
        });
    assert_eq!(run.await.unwrap().result, first);
}

/// The subkeys that a function's handler got, in order.
#[derive(Clone, Default)]
struct Subkeys(Arc<Mutex<Vec<String>>>);

impl Subkeys {
    fn handler(
        &self,
    ) -> impl Fn(Value, Call) -> std::future::Ready<Result<(), Failure>>
    + AsyncFn(Value, Call) -> Result<(), Failure>
    + Clone
    + Send
    + Sync
    + 'static {
        let subkeys = self.clone();
        move |_, call| {
            assert_eq!(call.key_hash(), None);
            subkeys.0.lock().unwrap().push(call.subkey("charge"));
            std::future::ready(Ok(()))
        }
    }

    fn total_and_distinct(&self) -> (usize, usize) {
        let subkeys = self.0.lock().unwrap();
        (subkeys.len(), subkeys.iter().collect::<std::collections::BTreeSet<_>>().len())
    }
}

#[tokio::test]
async fn rabbit_mq_messages_without_an_id_have_different_subkeys() {
    let (world, subkeys) = (World::new(), Subkeys::default());
    let function =
        world.idempotency().on(RabbitMq::new(), &charge("charge"), subkeys.handler()).unwrap();
    let message = |customer: &str| {
        let body = base64(json!({ "customer": customer }).to_string());
        json!({ "basicProperties": {}, "data": body, "redelivered": false })
    };
    let event = json!({
        "eventSource": "aws:rmq",
        "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:b:b-1",
        "rmqMessagesByQueue": { "orders::/": [message("ann"), message("bob")] },
    });
    for _ in 0..2 {
        world.invoke(&function, &event).await.unwrap();
    }
    assert_eq!(subkeys.total_and_distinct(), (4, 2));
}

#[tokio::test]
async fn records_with_an_id_and_no_key_have_different_subkeys() {
    let (world, subkeys) = (World::new(), Subkeys::default());
    let function =
        world.idempotency().on(Sqs::new(), &charge("charge"), subkeys.handler()).unwrap();
    let event = batch([order("m-1", "a", ""), order("m-2", "a", "")]);
    for _ in 0..2 {
        assert!(world.returned(&function, &event).await.is_empty());
    }
    assert_eq!(subkeys.total_and_distinct(), (4, 2));
}
