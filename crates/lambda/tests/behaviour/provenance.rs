//! An idempotency record says where its last claim came from.

use std::{sync::Arc, time::Duration};

use lambda_idempotency::{
    keys::inspect,
    source::{RabbitMq, Sqs},
};
use lambda_idempotency_core::{clock::Clock as _, record::Provenance, store::Store as _};
use serde_json::{Value, json};

use crate::support::{World, batch, in_child, order, place, serve};

impl World {
    /// The provenance in the idempotency record of the first record of an event.
    async fn provenance(&self, event: &Value) -> Provenance {
        let records = inspect::event(&event.to_string(), Some(&place())).unwrap();
        let key = records[0].key.as_ref().unwrap().key.clone().unwrap();
        let found = self.store.inner().read(&[key], self.clock.now()).await.pop();
        found.unwrap().unwrap().unwrap().provenance.unwrap()
    }
}

#[tokio::test]
async fn each_claim_writes_its_time_its_invocation_and_its_record() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let event = batch([order("m-1", "a", "fail once")]);
    let mut first_at = None;
    for request_id in ["request-1", "request-2"] {
        let mut context = world.context();
        context.request_id = request_id.to_owned();
        let claimed_at = world.clock.now();
        world.clock.drive(serve(function.clone(), &event.to_string(), context)).await.unwrap();
        let found = world.provenance(&event).await;
        assert_eq!(found.worker.request_id.as_deref(), Some(request_id), "of the last claim");
        assert_eq!(found.claimed_at, claimed_at);
        assert_eq!((found.source.as_deref(), found.record.as_deref()), (Some("sqs"), Some("m-1")));
        assert_ne!(first_at.replace(found.claimed_at), Some(found.claimed_at));
        world.clock.advance(Duration::from_secs(60));
    }
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn an_id_that_an_application_has_chosen_is_not_in_it() {
    let world = World::new();
    let function = world.on(RabbitMq::new(), &place());
    let message = json!({
        "basicProperties": { "messageId": "ann@example.com" },
        "data": "eyJpZCI6ImEifQ==",
    });
    let event = json!({
        "eventSource": "aws:rmq",
        "eventSourceArn": "arn:aws:mq:eu-west-1:111122223333:broker:b:b-1",
        "rmqMessagesByQueue": { "orders::/": [message] },
    });
    world.invoke(&function, &event).await.unwrap();
    let found = world.provenance(&event).await;
    let record = found.record.unwrap();
    assert!(record.starts_with('#') && !record.contains("ann"), "{record}");
}

#[test]
fn the_function_is_the_one_that_lambda_names_in_the_environment() {
    in_child("provenance::child", 1, |child| {
        child.env("AWS_LAMBDA_FUNCTION_NAME", "orders").env("AWS_LAMBDA_FUNCTION_VERSION", "7");
        child.env("AWS_LAMBDA_LOG_STREAM_NAME", "2026/11/22/[7]0123456789abcdef");
    });
}

#[tokio::test]
#[ignore = "run by `the_function_is_the_one_that_lambda_names_in_the_environment`"]
async fn child() {
    let world = World::new();
    let function = world.on(Sqs::new(), &place());
    let event = batch([order("m-1", "a", "")]);
    world.invoke(&function, &event).await.unwrap();
    let worker = world.provenance(&event).await.worker;
    let text = |part: &Option<Arc<str>>| part.as_deref().unwrap_or_default().to_owned();
    assert_eq!(text(&worker.function), "orders");
    assert_eq!(text(&worker.version), "7");
    assert_eq!(text(&worker.log_stream), "2026/11/22/[7]0123456789abcdef");
}
