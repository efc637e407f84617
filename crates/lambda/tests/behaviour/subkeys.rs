//! Subkeys of calls without an idempotency key: no two customers share one.

use std::sync::{Arc, Mutex};

use lambda_idempotency::{Call, Failure, Idempotency, OnMissingKey, Operation, RunContext};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    support::{World, batch, order},
    support_streams::base64,
};

fn charge(name: &str) -> Operation {
    Operation::new(name).key("paymentId").on_missing_key(OnMissingKey::RunUnprotected)
}

async fn ran(
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
async fn calls_without_a_key_have_a_subkey_for_each_payload_tenant_and_operation() {
    let world = World::new();
    let idempotency = world.idempotency();
    let (ann, bob) = (json!({ "customer": "ann" }), json!({ "customer": "bob" }));
    let first = ran(&idempotency, None, "charge", &ann).await;
    assert_eq!(ran(&idempotency, None, "charge", &ann).await, first, "in each attempt");
    assert_ne!(ran(&idempotency, None, "charge", &bob).await, first);
    assert_ne!(ran(&idempotency, Some("acme"), "charge", &ann).await, first);
    assert_ne!(ran(&idempotency, None, "refund", &ann).await, first);
    let operation = charge("charge");
    let run =
        idempotency.run(&operation, &ann, RunContext::without_deadline(), async |call: Call| {
            Ok::<_, Failure>(call.subkey("charge"))
        });
    assert_eq!(run.await.unwrap().result, first);
}

/// What a function's records are told, one after the other.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn handler(
        &self,
    ) -> impl Fn(Value, Call) -> std::future::Ready<Result<(), Failure>> + Send + Sync + 'static
    {
        let told = self.clone();
        move |_, call| {
            assert_eq!(call.key_hash(), None);
            told.0.lock().unwrap().push(call.subkey("charge"));
            std::future::ready(Ok(()))
        }
    }

    fn all_and_distinct(&self) -> (usize, usize) {
        let told = self.0.lock().unwrap();
        (told.len(), told.iter().collect::<std::collections::BTreeSet<_>>().len())
    }
}

#[tokio::test]
async fn messages_of_rabbit_mq_without_an_id_have_subkeys_of_their_own() {
    let (world, told) = (World::new(), Told::default());
    let function = world.idempotency().rabbit_mq(charge("charge"), told.handler()).unwrap();
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
    assert_eq!(told.all_and_distinct(), (4, 2));
}

#[tokio::test]
async fn records_with_an_id_and_no_key_have_subkeys_of_their_own() {
    let (world, told) = (World::new(), Told::default());
    let function = world.idempotency().sqs(charge("charge"), told.handler()).unwrap();
    let event = batch([order("m-1", "a", ""), order("m-2", "a", "")]);
    for _ in 0..2 {
        assert!(world.returned(&function, &event).await.is_empty());
    }
    assert_eq!(told.all_and_distinct(), (4, 2));
}
