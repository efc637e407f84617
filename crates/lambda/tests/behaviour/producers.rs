//! Producer and consumer have the same key, for all payloads and sources.

use lambda_idempotency::{
    Operation,
    keys::{
        inspect::{self, AnySource, NoKey},
        powertools::PowertoolsKeys,
        producer::{Key, KeyFormat, KeySpec, ProducerError, Secret},
    },
    source::{Envelope, Sqs},
};
use lambda_idempotency_testkit::faults;
use lambda_runtime::Context;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    support::{FIFO, World, batch, bus_event, grouped, notification, order, serve, with_body},
    support_streams::{base64, message, topic, with_data},
};

/// JSON text of every kind, with inexact numbers, duplicate members, and strings that contain JSON.
fn payload() -> impl Strategy<Value = String> {
    let text = prop_oneof![Just(String::new()), "[a-c\"\\\\é\u{0}\u{1F600}]{0,4}", any::<String>()];
    let quoted = |text: String| Value::from(text).to_string();
    let numbers = ["0.1", "0.1000000000000000055", "-0.0", "1e400", "9007199254740993"];
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true", "7"]).prop_map(str::to_owned),
        prop::sample::select(numbers.to_vec()).prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        text.prop_map(quoted),
        Just(quoted(r#"{"id":"inner"}"#.to_owned())),
    ];
    let value = leaf.prop_recursive(3, 16, 4, |inner| {
        let member =
            ("[a-c]", inner.clone()).prop_map(|(name, value)| format!("\"{name}\":{value}"));
        prop_oneof![
            prop::collection::vec(inner, 0..4)
                .prop_map(|items| format!("[{}]", items.join(" ,\t"))),
            prop::collection::vec(member, 0..4).prop_map(|all| format!("{{ {} }}", all.join(", "))),
        ]
    });
    let members = ["a", "b", "c", "id"].map(|name| {
        let member = value.clone().prop_map(move |value| format!("\"{name}\": {value}"));
        prop::option::weighted(0.85, member)
    });
    // Sometimes a second member of the same name.
    let again = prop::option::weighted(0.05, value.prop_map(|value| format!("\"id\": {value}")));
    (members, again).prop_map(|(members, again)| {
        let members: Vec<String> = members.into_iter().chain([again]).flatten().collect();
        format!("{{{}}}", members.join(",\n"))
    })
}

fn spec() -> impl Strategy<Value = KeySpec> {
    let expressions = [
        "id",
        "[id, a]",
        "[a, b.c]",
        "{x: a, y: id}",
        "not_null(a, b)",
        "@",
        "a[*].b",
        "json(id).id",
    ];
    let formats = [
        KeyFormat::Hashed,
        KeyFormat::Readable,
        KeyFormat::Secret(Secret::new("4f1f5c0e2b7d49a8").unwrap()),
    ];
    let custom = (
        "[a-z]{1,4}",
        prop::sample::select(expressions.to_vec()),
        prop::sample::select(formats.to_vec()),
    )
        .prop_map(|(name, key, form)| KeySpec::new(name, key).key_format(form));
    let optional =
        Just(KeySpec::new("place", lambda_idempotency::keys::payload("[id, a]").optional(["a"])));
    let powertools = [
        PowertoolsKeys::python("fn.app.place"),
        PowertoolsKeys::typescript("fn"),
        PowertoolsKeys::python("fn.app.place").accept_collisions(),
    ];
    let powertools = (
        prop::sample::select(vec!["id", "[id, a]", "@"]),
        prop::sample::select(powertools.to_vec()),
    )
        .prop_map(|(key, powertools)| KeySpec::new("place", key).powertools(powertools));
    prop_oneof![6 => custom, 3 => optional, 3 => powertools]
}

/// The event of each source for a payload, and its envelope.
fn events(payload: &str) -> Vec<(&'static str, Value, Option<Envelope>)> {
    let mut kafka = message(0, 1, "", "");
    kafka["value"] = base64(payload).into();
    let inner = json!({ "MessageId": "n-1", "TopicArn": "t", "Message": payload }).to_string();
    vec![
        ("sqs", batch([with_body("m-1", payload)]), None),
        ("sqs", batch([grouped(with_body("m-1", payload), FIFO, "g")]), None),
        ("sqs", batch([with_body("m-1", &inner)]), Some(Envelope::Sns)),
        ("sns", notification("n-1", payload), None),
        ("kinesis", batch([with_data(1, "p", payload)]), None),
        ("kafka", topic([kafka]), None),
    ]
}

/// The key that the consumer of `event` makes.
fn consumed(
    operation: &Operation,
    any: &AnySource,
    source: &str,
    event: &str,
) -> Result<Key, NoKey> {
    let context = Context::default();
    let mut records = inspect::invocation(event, any, Some(operation), &context).unwrap();
    assert_eq!(records.len(), 1);
    let record = records.remove(0);
    assert_eq!(record.source, source);
    record.key.unwrap().key
}

/// The key that the consumer of a queue makes.
fn from_queue(operation: &Operation, event: &str) -> Result<Key, NoKey> {
    consumed(operation, &AnySource::new(), "sqs", event)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Both make the same key, or refuse the payload for the same reason.
    #[test]
    fn producer_and_consumer_agree(payload in payload(), spec in spec()) {
        let expected = match spec.producer().unwrap().message_of(&*payload) {
            Ok(message) => Ok(message.key().clone()),
            Err(ProducerError::Rejected { reason, .. }) => Err(NoKey::Refused(reason.into())),
            Err(other) => panic!("{other}"),
        };
        let operation = Operation::from(spec);
        for (source, event, envelope) in events(&payload) {
            let any = envelope.into_iter().fold(AnySource::new(), AnySource::envelope);
            let found = consumed(&operation, &any, source, &event.to_string());
            prop_assert_eq!(&found, &expected, "{}", source);
        }
        // The producer of the operation makes the same key.
        let custom = operation.producer().unwrap().key(&payload).ok();
        prop_assert_eq!(custom.as_ref(), expected.as_ref().ok());
        // The detail is in the event as it was sent.
        let event = bus_event("e-1", "Placed", &json!("detail")).to_string();
        let event = event.replace("\"detail\":\"detail\"", &format!("\"detail\":{payload}"));
        let any = AnySource::new();
        prop_assert_eq!(&consumed(&operation, &any, "eventbridge", &event), &expected);
    }
}

/// Shows that the test above compares both: of 400 payloads, 100 to 300 have a key.
#[test]
fn payloads_with_and_without_a_key_are_compared() {
    use proptest::{strategy::ValueTree as _, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let keyed = (0..400)
        .filter(|_| {
            let (payload, spec) = (payload(), spec()).new_tree(&mut runner).unwrap().current();
            spec.producer().unwrap().key(&payload).is_ok()
        })
        .count();
    assert!((100..300).contains(&keyed), "{keyed} of 400 have a key");
}

/// Without a setting of the key specification, the consumer has another key, or none.
#[test]
fn an_operation_that_lacks_a_setting_of_the_key_specification_has_other_keys() {
    let secret = KeyFormat::Secret(Secret::new("4f1f5c0e2b7d49a8").unwrap());
    let event = batch([with_body("m-1", r#"{"id":7,"a":null,"c":1}"#)]).to_string();
    let plain = Operation::new("place").key("[id, c]");
    let with_default = || KeySpec::new("place", "[id, c]");
    for (spec, without) in [
        (
            KeySpec::new("place", lambda_idempotency::keys::payload("[id, a]").optional(["a"])),
            Operation::new("place").key("[id, a]"),
        ),
        (with_default().key_format(KeyFormat::Readable), plain.clone()),
        (with_default().key_format(secret), plain.clone()),
        (with_default().powertools(PowertoolsKeys::python("place")), plain.clone()),
        (KeySpec::without_key("place").key_fn(|_| Ok(vec!["7".to_owned()])), plain.clone()),
        (KeySpec::new("refund", "[id, c]"), plain.clone()),
        (KeySpec::new("place", "id"), plain.clone()),
    ] {
        let key = spec.producer().unwrap().key(r#"{"id":7,"a":null,"c":1}"#).unwrap();
        assert_eq!(from_queue(&Operation::from(spec), &event), Ok(key.clone()));
        if without.check().is_ok() {
            assert_ne!(from_queue(&without, &event), Ok(key));
        }
    }
}

/// The key that is claimed in the store is the producer's, for each tenant.
#[tokio::test]
async fn the_claimed_key_is_that_of_the_producer() {
    let spec = KeySpec::new("place", "[id, do]").key_format(KeyFormat::Readable);
    let producer = spec.producer().unwrap();
    for tenant in [None, Some("blue"), Some("")] {
        let world = World::new();
        let operation = Operation::from(spec.clone());
        let function = world.on(Sqs::new(), &operation);
        let event = batch([grouped(order("m-1", "a", "x"), FIFO, "g")]).to_string();
        let mut context = world.context();
        context.tenant_id = tenant.map(ToOwned::to_owned);
        let served = serve(function, &event, context);
        world.clock.drive(served).await.unwrap();

        let producer = match tenant {
            Some(tenant) => producer.for_tenant(tenant),
            None => producer.clone(),
        };
        let message = producer.message(&json!({ "id": "a", "do": "x" })).unwrap();
        let written: Vec<Key> = world
            .store
            .history()
            .into_iter()
            .filter_map(|call| match call {
                faults::Call::Write { writes, .. } => Some(writes),
                _ => None,
            })
            .flatten()
            .map(|write| write.key)
            .collect();
        assert_eq!(written, [message.key().clone(), message.key().clone()], "claim, completion");
        world.ledger.assert_once("a");
    }
}
