//! One operation for several sources: an order is placed once, whichever source delivers it, and an event of
//! another source is refused with a reason.

use lambda_idempotency_local::InvocationResult;
use lambda_idempotency_tests::events::{batch_of, event, kinesis, notification, order};
use serde_json::{Value, json};

use crate::support::{World, error, outcomes};

/// All sources share one operation, so an order is the same work whichever source delivers it. Each source
/// is the first for one of the orders.
#[tokio::test]
async fn an_order_from_several_sources_is_placed_once() {
    let world = World::new().await;
    let number = |id: &str| id[2..].parse().unwrap();
    let mut events = [0, 1, 2, 3].map(|source| {
        move |id: &str| match source {
            0 => batch_of([order(id)]),
            1 => notification(&format!("n-{id}"), &order(id)),
            2 => event(&format!("e-{id}"), &order(id)),
            _ => kinesis([(0, number(id), "c-17", order(id))]),
        }
    });
    let mut sources = Vec::new();
    for id in ["o-1", "o-2", "o-3", "o-4"] {
        let mut found = Vec::new();
        for event in &events {
            let report = world.send(&event(id)).await;
            found.push(outcomes(&report).concat());
            let line = report.records().next().unwrap().line.clone().unwrap();
            assert_eq!(line.operation, "place-order");
            sources.push(line.source);
        }
        assert_eq!(found, ["executed", "replayed", "replayed", "replayed"], "{id}");
        events.rotate_left(1);
    }
    assert_eq!(sources[..4], ["sqs", "sns", "eventbridge", "kinesis"]);
    world.assert_placed_once(["o-1", "o-2", "o-3", "o-4"]);
    assert_eq!(world.claims().len(), 4);
}

#[tokio::test]
async fn an_event_of_another_source_is_refused_by_name() {
    let world = World::new().await;
    let changes = json!({ "Records": [{ "eventSource": "aws:dynamodb", "dynamodb": {},
        "eventSourceARN": "arn:aws:dynamodb:eu-west-1:111122223333:table/orders/stream/2026" }] });
    let unknown: [(Value, &str); 5] = [
        (json!({ "command": "recount-stock" }), "nor a `detail-type`"),
        (changes, "aws:dynamodb"),
        (json!([1, 2]), "not a JSON object"),
        // A list is not an event, even if its items are lists of records.
        (json!([batch_of([order("o-1")])["Records"]]), "not a JSON object"),
        (Value::Null, "not a JSON object"),
    ];
    for (event, found) in unknown {
        let invocation = world.invoke(&event).await.unwrap();
        let (kind, text) = error(&invocation.result);
        assert_eq!(kind, "Idempotency.UnknownEvent");
        assert!(text.contains("the function handles sqs, sns, eventbridge, kinesis"), "{text}");
        assert!(text.contains(found) && text.contains(".otherwise("), "{text}");
        assert_eq!(invocation.dynamodb.requests(), 0, "no key is claimed");
    }
    // The process still handles events.
    assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
}

/// SQS never sends an empty batch, but users test their functions with one.
#[tokio::test]
async fn an_empty_batch_succeeds_at_once() {
    let world = World::new().await;
    let invocation = world.invoke(&json!({ "Records": [] })).await.unwrap();
    let nothing = InvocationResult::Response(json!({ "batchItemFailures": [] }));
    assert_eq!(invocation.result, nothing);
    assert_eq!(invocation.dynamodb.requests(), 0);
}
