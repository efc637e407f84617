//! One operation on several sources: work that one source delivered is not repeated for another.

use lambda_idempotency::{
    ConfigError, FunctionBuilder, Operation, keys::KeyFormat, payload, powertools::PowertoolsKeys,
    producer::KeySpecError, record, source::EventBridge,
};
use serde_json::json;

use crate::support::{World, batch, bus_event, notification, order, with_body};

fn place() -> Operation {
    Operation::new("place").key("id")
}

fn built(world: &World, operation: Operation, sources: Sources) -> FunctionBuilder {
    world.idempotency().function().sources(operation, world.handler(), sources)
}

fn refused(operation: Operation, sources: Sources) -> ConfigError {
    built(&World::new(), operation, sources).build().err().unwrap()
}

/// The order of the sources changes, so that each source comes first once.
#[tokio::test]
async fn an_order_from_several_sources_is_placed_once() {
    let world = World::new();
    let sources = || {
        Sources::new()
            .sqs(|place| place.queue("orders"))
            .sns(|place| place.key(record("Sns.MessageAttributes.order.Value")))
            .event_bridge(|place| place.key("order.id").detail_type("OrderRequested"))
            .invoke(|place| place)
    };
    let function = built(&world, place(), sources()).build().unwrap();
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
    let sources = Sources::new()
        .sqs(|place| place.queue("orders"))
        .sqs(|place| place.queue("orders-again").key("order.id"));
    let function = built(&world, place(), sources).build().unwrap();
    let mut other = with_body("m-2", r#"{"order":{"id":"a"}}"#);
    other["eventSourceARN"] = "arn:aws:sqs:eu-west-1:111122223333:orders-again".into();
    for message in [order("m-1", "a", ""), other] {
        assert!(world.returned(&function, &batch([message])).await.is_empty());
    }
    assert_eq!(world.ledger.total(), 1);
}

#[test]
fn sources_of_one_operation_need_a_key_each() {
    let error = refused(Operation::new("place"), Sources::new().sqs(|p| p).sns(|p| p.key("id")));
    let source_name = "sqs";
    assert_eq!(error, ConfigError::SourceWithoutKey { operation: "place".into(), source_name });
    let error = refused(Operation::new("place"), Sources::new().sqs(|p| p.key("id")).sns(|p| p));
    let source_name = "sns";
    assert_eq!(error, ConfigError::SourceWithoutKey { operation: "place".into(), source_name });
}

#[test]
fn a_single_source_may_use_its_own_identity() {
    let world = World::new();
    built(&world, Operation::new("place"), Sources::new().sqs(|p| p)).build().unwrap();
}

#[test]
fn sources_of_one_operation_share_its_name() {
    let error = refused(place(), Sources::new().sqs(|p| p).sns(|_| Operation::new("b").key("id")));
    let (operation, other) = ("place".into(), "b".into());
    assert_eq!(error, ConfigError::SourceName { operation, source_name: "sns", other });
}

#[test]
fn sources_whose_keys_never_agree_are_refused() {
    let (one, two) = ("4f1f5c0e2b7d49a8", "8a94d7b2e0c5f1f4");
    let parts = || Operation::new("place").key("[id, coupon]");
    let cases = [
        (
            refused(place(), Sources::new().sqs(|p| p).sns(|p| p.key_format(KeyFormat::Readable))),
            "key_format",
        ),
        (
            refused(
                place(),
                Sources::new()
                    .sqs(|p| p)
                    .sns(move |p| p.key_format(KeyFormat::secret(one).unwrap())),
            ),
            "key_format",
        ),
        (
            refused(
                place(),
                Sources::new()
                    .sqs(move |p| p.key_format(KeyFormat::secret(one).unwrap()))
                    .sns(move |p| p.key_format(KeyFormat::secret(two).unwrap())),
            ),
            "key_format",
        ),
        (refused(parts(), Sources::new().sqs(|p| p).sns(|p| p.optional(["coupon"]))), "optional"),
        (refused(place(), Sources::new().sqs(|p| p).sns(|p| p.key("[id]"))), "key"),
        (refused(parts(), Sources::new().sqs(|p| p).sns(|p| p.key("[id]"))), "key"),
        (refused(parts(), Sources::new().sqs(|p| p).sns(|p| p.key("{id: id, c: coupon}"))), "key"),
        (
            refused(
                place(),
                Sources::new().sqs(|p| p).sns(|p| p.powertools(PowertoolsKeys::python("fn.app"))),
            ),
            "powertools",
        ),
    ];
    for (error, setting) in cases {
        let (operation, source_name) = ("place".into(), "sns");
        assert_eq!(error, ConfigError::SourceKeys { operation, source_name, setting });
        assert!(!error.to_string().contains(one), "{error}");
    }
}

#[test]
fn settings_that_agree_are_not_refused() {
    let world = World::new();
    let secret = "4f1f5c0e2b7d49a8";
    let operation =
        Operation::new("place").key("[id, coupon]").key_format(KeyFormat::secret(secret).unwrap());
    let sources = Sources::new().sqs(|p| p.optional(["coupon"])).sns(move |p| {
        p.key(payload("[order.id, order.coupon]").optional(["order.coupon"]))
            .key_format(KeyFormat::secret(secret).unwrap())
    });
    built(&world, operation, sources).build().unwrap();
}

#[test]
fn mistakes_in_each_source_are_refused() {
    let error = refused(place(), Sources::new().sqs(|p| p).sns(|p| p.key("order.[")));
    assert!(matches!(error, ConfigError::KeySpec(KeySpecError::Expression { .. })), "{error}");
    let error = refused(place(), Sources::new().sqs(|p| p).sns(|p| p.queue("orders")));
    assert!(matches!(error, ConfigError::Misplaced { source_name: "sns", .. }), "{error}");
    let error = refused(place(), Sources::new().sqs(|p| p).sqs(|p| p.queue("orders")));
    assert!(matches!(error, ConfigError::OutOfReach { .. }), "{error}");
    let error = refused(Operation::new("a#b").key("id"), Sources::new().sqs(|p| p));
    assert_eq!(error, ConfigError::KeySpec(KeySpecError::Name { name: "a#b".into() }));
    let error = refused(place(), Sources::new());
    assert_eq!(error, ConfigError::OperationWithoutSource { operation: "place".into() });
}

/// Another registration with the same name would be different work.
#[test]
fn a_name_on_several_sources_cannot_be_registered_again() {
    let world = World::new();
    let sources = Sources::new().sqs(|p| p).sns(|p| p);
    let error = built(&world, place(), sources)
        .on(EventBridge::new(), &place(), world.handler())
        .build()
        .err()
        .unwrap();
    assert_eq!(error, ConfigError::DuplicateName { name: "place".into() });
}

#[test]
fn the_debug_text_lists_each_source() {
    let world = World::new();
    let sources = Sources::new().sqs(|p| p.queue("orders")).sns(|p| p);
    assert_eq!(format!("{sources:?}"), r#"["sqs", "sns"]"#);
    let builder = built(&world, place(), sources);
    assert_eq!(format!("{builder:?}"), r#"{"place": "sqs", "place": "sns"}"#);
    let function = builder.build().unwrap();
    assert_eq!(format!("{function:?}"), r#"{"place": "sqs from orders", "place": "sns"}"#);
}
