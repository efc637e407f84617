//! Events that match no source, and JSON that is not an event.

use lambda_idempotency::{
    Failure, Function, Operation,
    source::{EventBridge, Sns, Sqs},
};
use lambda_runtime::LambdaEvent;
use serde_json::{Value, json, value::RawValue};

use crate::support::{World, batch, bus_event, diagnostic, notification, order, sample};

fn shop(world: &World) -> Function {
    let [place, cancel] = ["place", "cancel"].map(|name| Operation::new(name).key("id"));
    let of_shop = EventBridge::new().event_source("shop");
    world.on_both((Sqs::new().queue("orders"), place), (of_shop, cancel))
}

#[tokio::test]
async fn the_error_names_the_event_and_the_expected_sources() {
    let world = World::new();
    let function = shop(&world);
    let mut stranger = bus_event("e-1", "Started", &json!({ "id": "s3cr3t" }));
    stranger["source"] = "aws.ec2".into();
    let mut queue = order("m-1", "s3cr3t", "");
    queue["eventSourceARN"] = "arn:aws:sqs:eu-west-1:1:other".into();
    for (event, found) in [
        (stranger, "an EventBridge event \"Started\" from \"aws.ec2\""),
        (json!([queue.clone()]), "event source \"aws:sqs\" from arn:aws:sqs:eu-west-1:1:other"),
        (batch([queue]), "event source \"aws:sqs\" from arn:aws:sqs:eu-west-1:1:other"),
        (notification("n-1", "s3cr3t"), "event source \"aws:sns\""),
        (serde_json::from_str(&sample("dynamoStreamEvent")).unwrap(), "\"aws:dynamodb\""),
        (json!({ "orderId": "s3cr3t" }), "neither"),
        (json!({ "Records": "s3cr3t" }), "neither"),
        (json!({ "Records": ["s3cr3t"] }), "without an event source"),
        (json!({ "Records": [{ "body": "s3cr3t" }] }), "without an event source"),
        (json!({ "source": 7, "id": {}, "detail-type": ["s3cr3t"] }), "neither"),
    ] {
        let text = world.fails(&function, &event, "UnknownEvent").await;
        assert!(text.contains(found), "{text}");
        assert!(text.contains("sqs from orders") && text.contains("eventbridge from shop"));
        assert!(text.contains("otherwise"), "the remedy: {text}");
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}

#[tokio::test]
async fn json_that_is_not_an_object_is_not_an_event() {
    let world = World::new();
    let function = shop(&world);
    let records = batch([order("m-1", "a", "")])["Records"].to_string();
    for event in ["[]", "[1,2]", "\"s3cr3t\"", "7", "null", "true", &format!("[{records}]")] {
        let (kind, text) = diagnostic(world.invoke_raw(&function, event).await.unwrap_err());
        assert_eq!(kind, "Idempotency.UnknownEvent", "{event}");
        assert!(text.contains("not a JSON object"), "{event}: {text}");
        assert!(!text.contains("s3cr3t"), "{text}");
    }
    assert_eq!(world.ledger.total(), 0);
}

#[tokio::test]
async fn an_empty_batch_succeeds_without_requests_to_the_store() {
    let world = World::new();
    let event = batch([]);
    let answer = world.invoke(&shop(&world), &event).await.unwrap();
    assert_eq!(answer, json!({ "batchItemFailures": [] }));
    let sns = world.on(Sns::new(), &Operation::new("ship"));
    assert_eq!(world.invoke(&sns, &event).await.unwrap(), Value::Null);
    assert!(world.store.history().is_empty(), "no request to the store");
}

#[tokio::test]
async fn otherwise_takes_events_of_unknown_sources() {
    let world = World::new();
    let ledger = world.ledger.clone();
    let function = world
        .idempotency()
        .function()
        .on(Sqs::new(), &Operation::new("place").key("id"), world.handler())
        .otherwise(move |event: LambdaEvent<Box<RawValue>>| {
            ledger.record(event.payload.get(), "");
            async move {
                match event.payload.get() {
                    "\"fail\"" => Err(Failure::transient("s3cr3t")),
                    text => Ok(json!({ "length": text.len(), "by": event.context.request_id })),
                }
            }
        })
        .build()
        .unwrap();
    for event in ["[]", "7", "{}"] {
        for _ in 0..2 {
            let answer = world.invoke_raw(&function, event).await.unwrap();
            assert_eq!(answer, json!({ "length": event.len(), "by": "request-1" }));
        }
        assert_eq!(world.ledger.executed(event), 2, "it is not protected");
    }
    let (kind, text) = diagnostic(world.invoke_raw(&function, "\"fail\"").await.unwrap_err());
    assert_eq!(kind, "Idempotency.HandlerFailed");
    assert!(text.contains("a text") && !text.contains("s3cr3t"), "{text}");
    let answer = world.invoke(&function, &batch([order("m-1", "a", "")])).await.unwrap();
    assert_eq!(
        answer,
        json!({ "batchItemFailures": [] }),
        "events of known sources go to their own handler"
    );
}

/// Anybody may send an event, and what it says of its source ends in a line of the log.
#[tokio::test]
async fn an_error_has_no_long_texts_and_no_control_characters_of_its_event() {
    let world = World::new();
    let function = shop(&world);
    let long = "x\n\u{1b}[2J".repeat(60_000);
    let mut of_bus = bus_event("e-1", &long, &json!({}));
    of_bus["source"] = long.as_str().into();
    let mut queued = order("m-1", "a", "");
    queued["eventSource"] = long.as_str().into();
    queued["eventSourceARN"] = long.as_str().into();
    let cluster = json!({ "eventSource": long, "eventSourceArn": long });
    let whole = Sqs::new().without_partial_responses();
    let failing = world.on(whole, &Operation::new("fail").key("id"));
    let mut returned = order(&long, "a", "fail");
    returned["eventSourceARN"] = long.as_str().into();
    for (function, event) in [
        (&function, of_bus.clone()),
        (&function, json!([of_bus])),
        (&function, json!([queued])),
        (&function, batch([queued])),
        (&function, cluster),
        (&failing, batch([returned])),
    ] {
        let (_, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
        assert!(text.len() < 4096 && !text.contains(char::is_control), "{} bytes", text.len());
    }
}

#[tokio::test]
async fn an_event_that_an_input_of_its_own_hides_is_told_why() {
    let world = World::new();
    let input = json!({ "report": "sales" });
    let (_, text) = diagnostic(world.invoke(&shop(&world), &input).await.unwrap_err());
    assert!(text.contains("`scheduleArn` and `scheduledTime`"), "{text}");
}
