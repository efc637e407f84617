//! One operation on several sources: work that one source delivered is not repeated for another.

use lambda_idempotency::{
    Operation,
    keys::record,
    source::{EventBridge, Invoke, S3, Sns, Sqs},
};
use serde_json::json;

use crate::{
    secrecy::capture::Captured,
    support::{World, batch, bus_event, nothing, notification, order, place, with_body},
    support_streams::uploaded,
};

/// The order of the sources changes, so that each source comes first once.
#[tokio::test]
async fn an_order_from_several_sources_is_placed_once() {
    let (world, place) = (World::new(), place());
    let by_attribute = record("Sns.MessageAttributes.order.Value");
    let function = world
        .idempotency()
        .function()
        .on(
            (
                Sqs::new().queue("orders"),
                Sns::new().key(by_attribute),
                EventBridge::new().key("order.id").detail_type("OrderRequested"),
                Invoke::new(),
            ),
            &place,
            world.handler(),
        )
        .build()
        .unwrap();
    let by = |source: &str, id: &str| match source {
        "sqs" => batch([order(&format!("m-{id}"), id, "")]),
        "sns" => {
            let mut event = notification(&format!("n-{id}"), &json!({ "id": id }).to_string());
            event["Records"][0]["Sns"]["MessageAttributes"] =
                json!({ "order": { "Type": "String", "Value": id } });
            event
        }
        "bus" => {
            let detail = json!({ "id": id, "order": { "id": id } });
            bus_event(&format!("e-{id}"), "OrderRequested", &detail)
        }
        _ => json!({ "id": id }),
    };
    let mut ways = ["sqs", "sns", "bus", "invoke"];
    for id in ["a", "b", "c", "d"] {
        for source in ways {
            world.invoke(&function, &by(source, id)).await.unwrap();
        }
        ways.rotate_left(1);
    }
    assert_eq!(world.ledger.total(), 4, "{:?}", ways);
    assert_eq!(world.store.inner().len(), 4);
}

#[tokio::test]
async fn two_queues_can_share_an_operation() {
    let world = World::new();
    let again = Sqs::new().queue("orders-again").key("order.id");
    let function = world.on([Sqs::new().queue("orders"), again], &place());
    let mut other = with_body("m-2", r#"{"order":{"id":"a"}}"#);
    other["eventSourceARN"] = "arn:aws:sqs:eu-west-1:111122223333:orders-again".into();
    for message in [order("m-1", "a", ""), other] {
        assert!(world.returned(&function, &batch([message])).await.is_empty());
    }
    assert_eq!(world.ledger.total(), 1);
}

#[test]
fn the_debug_text_lists_each_source() {
    let function = World::new().idempotency().function();
    let queue = Sqs::new().queue("orders");
    let builder = function.on(queue, &place(), nothing).on(Sns::new(), &place(), nothing);
    assert_eq!(format!("{builder:?}"), r#"{"place": "sqs", "place": "sns"}"#);
    let function = builder.build().unwrap();
    assert_eq!(format!("{function:?}"), r#"{"place": "sqs from orders", "place": "sns"}"#);
}

/// S3 writes `a+b`, and EventBridge `a b`, for one object.
#[test]
fn two_spellings_of_an_object_are_said_at_the_start() {
    let said = |s3: S3, events: EventBridge| {
        let captured = Captured::default();
        let guard = captured.start();
        let function = World::new().idempotency().function();
        let index = Operation::new("index");
        function.on(s3, &index, nothing).on(events, &index, nothing).build().unwrap();
        drop(guard);
        captured.text().contains("one object has two idempotency keys")
    };
    let keyed = |path: &str| EventBridge::new().key(path);
    assert!(said(S3::new().key("s3.object.key"), keyed("object.key")));
    assert!(said(S3::new().key("url_decode(s3.object.key)"), keyed("url_decode(object.key)")));
    assert!(!said(S3::new().key("url_decode(s3.object.key)"), keyed("object.key")));
    assert!(!said(S3::new().key("s3.object.key | url_decode(@)"), keyed("object.key")));
    assert!(!said(S3::new().key("url_decode( s3.object.key )"), keyed("object.key")));
    assert!(!said(S3::new().key("s3.object | url_decode(key)"), keyed("object.key")));
    assert!(!said(S3::new().key("s3.object.sequencer"), keyed("object.sequencer")));
    let other_member = "[url_decode(s3.bucket.name), s3.object.key]";
    assert!(said(S3::new().key(other_member), keyed("[bucket.name, object.key]")));
}

#[tokio::test]
async fn an_object_from_s3_and_through_eventbridge_is_processed_once() {
    let (world, index) = (World::new(), Operation::new("index"));
    let notified = S3::new().key("[url_decode(s3.object.key), s3.object.sequencer]");
    let told = EventBridge::new().key("[object.key, object.sequencer]");
    let function = world.on((notified, told), &index);
    let objects =
        [("my+photo%20%281%29.jpg", "my photo (1).jpg"), ("my%2Bphoto.jpg", "my+photo.jpg")];
    for (encoded, plain) in objects {
        let detail =
            json!({ "bucket": { "name": "b" }, "object": { "key": plain, "sequencer": "0C" } });
        for event in [batch([uploaded(encoded, "0C")]), bus_event("e-1", "Object Created", &detail)]
        {
            world.invoke(&function, &event).await.unwrap();
        }
    }
    assert_eq!(world.ledger.total(), 2);
}
