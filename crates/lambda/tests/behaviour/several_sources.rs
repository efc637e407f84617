//! One operation on several sources: work that one source delivered is not repeated for another.

use lambda_idempotency::{
    Call, ConfigError, Failure, Operation,
    keys::KeyFormat,
    payload,
    powertools::PowertoolsKeys,
    record,
    source::{EventBridge, Invoke, Sns, Sqs},
};
use serde_json::{Value, json};

use crate::support::{World, batch, bus_event, nothing, notification, order, with_body};

fn place() -> Operation {
    Operation::new("place").key("id")
}

/// Whether an operation can be on both sources.
pub(crate) fn built(
    (queue, one): (Sqs, Operation),
    (topic, other): (Sns, Operation),
) -> Result<(), ConfigError> {
    let function = World::new().idempotency().function();
    function.on(queue, &one, nothing).on(topic, &other, nothing).build().map(drop)
}

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
fn sources_of_one_operation_need_a_key_each() {
    let without = || Operation::new("place");
    for (refused, source) in [
        (built((Sqs::new(), without()), (Sns::new().key("id"), without())), "sqs"),
        (built((Sqs::new().key("id"), without()), (Sns::new(), without())), "sns"),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ConfigError::Source(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("`place`") && text.contains(&format!("for {source}:")), "{text}");
    }
}

#[test]
fn sources_whose_keys_never_agree_are_refused() {
    let (one, two) = ("4f1f5c0e2b7d49a8", "8a94d7b2e0c5f1f4");
    let secret = |secret| place().key_format(KeyFormat::secret(secret).unwrap());
    let parts = || Operation::new("place").key("[id, coupon]");
    let python = |operation: Operation| operation.powertools(PowertoolsKeys::python("fn.app"));
    let validated = || python(place().fingerprint("amount"));
    let optional = || Sns::new().key(payload("[id, coupon]").optional(["coupon"]));
    for (operation, source, other, setting) in [
        (place(), Sns::new(), place().key_format(KeyFormat::Readable), "key_format"),
        (place(), Sns::new(), secret(one), "key_format"),
        (secret(one), Sns::new(), secret(two), "key_format"),
        (parts(), optional(), parts(), "optional"),
        (place(), Sns::new().key("[id]"), place(), "key"),
        (parts(), Sns::new().key("[id]"), parts(), "key"),
        (parts(), Sns::new().key("{id: id, c: coupon}"), parts(), "key"),
        (place(), Sns::new(), place().powertools(PowertoolsKeys::python("fn.app")), "powertools"),
        (python(place()), Sns::new().key("[id]"), python(place()), "key"),
        (python(parts()), Sns::new().key("powertools_json(body).[id]"), python(parts()), "key"),
        (validated(), Sns::new().fingerprint("[amount]"), validated(), "fingerprint"),
    ] {
        let about = format!("{source:?}");
        let error = built((Sqs::new(), operation), (source, other)).expect_err(&about);
        assert!(matches!(error, ConfigError::Source(_)), "{error}");
        let text = error.to_string();
        let parts = ["`place`", "for sns", &format!("because `.{setting}(..)` differs")];
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains(one), "{text}");
    }
}

#[test]
fn settings_that_agree_are_not_refused() {
    let secret = || KeyFormat::secret("4f1f5c0e2b7d49a8").unwrap();
    let operation = || Operation::new("place").key("[id, coupon]").key_format(secret());
    let queue = Sqs::new().key(payload("[id, coupon]").optional(["coupon"]));
    let topic = Sns::new().key(payload("[order.id, order.coupon]").optional(["order.coupon"]));
    assert_eq!(built((queue, operation()), (topic, operation())), Ok(()));
    let python = || place().powertools(PowertoolsKeys::python("fn.app"));
    let inside = Sns::new().key("powertools_json(body).id");
    assert_eq!(built((Sqs::new(), python()), (inside, python())), Ok(()));
}

#[test]
fn mistakes_in_each_source_are_refused() {
    let mistaken = built((Sqs::new(), place()), (Sns::new().key("order.["), place()));
    assert!(matches!(mistaken, Err(ConfigError::Key(_))), "{mistaken:?}");
    let unreached = World::new()
        .idempotency()
        .function()
        .on(Sqs::new(), &place(), nothing)
        .on(Sqs::new().queue("orders"), &place(), nothing)
        .build();
    let error = unreached.unwrap_err();
    assert!(matches!(error, ConfigError::Source(_)), "{error}");
    assert!(error.to_string().contains("is never reached"), "{error}");
    let unnamed = || Operation::new("a#b").key("id");
    let error = built((Sqs::new(), unnamed()), (Sns::new(), unnamed())).unwrap_err();
    assert!(matches!(error, ConfigError::Name(_)), "{error}");
}

#[test]
fn a_list_of_sources_has_one() {
    let none = Vec::<Sqs>::new();
    let function = World::new().idempotency().function().on(none, &place(), nothing);
    let error = function.on(Sqs::new(), &Operation::new("other"), nothing).build().unwrap_err();
    assert!(matches!(&error, ConfigError::Source(text) if text.contains("`place`")), "{error}");
}

/// It would be different work.
#[test]
fn a_name_on_several_sources_has_one_handler() {
    let another = async |_: Value, _: Call| Ok::<_, Failure>(());
    let function = World::new().idempotency().function();
    let function = function.on(Sqs::new(), &place(), nothing).on(Sns::new(), &place(), nothing);
    let error = function.on(EventBridge::new(), &place(), another).build().unwrap_err();
    assert!(matches!(error, ConfigError::Name(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("operation `place` has two handlers"), "{text}");
    assert!(text.contains("register the same handler for each"), "{text}");
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
