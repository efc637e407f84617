//! Keys of messages before they are sent, and the deduplication ids made from them.

use lambda_idempotency_keys::powertools::PowertoolsKeys;
use lambda_idempotency_keys::{
    Key, KeyFormat, Secret, SelectionError,
    producer::{KeySpec, PayloadError, Producer, ProducerError, deduplication_id},
};
use proptest::prelude::*;

use crate::support::{cases, key};

const ORDER: &str = r#"{"tenant":"acme","order":{"id":42},"note":null}"#;

fn producer(key: &str) -> Producer {
    KeySpec::new("op", key).producer().unwrap()
}

/// The keys and ids of scheme 1, as another implementation computes them. They must never change.
#[test]
fn golden_keys_and_ids() {
    let by_id = producer("order.id");
    let secret = KeyFormat::Secret(Secret::new("4f1f5c0e2b7d49a8").unwrap());
    let spec = || KeySpec::new("op", "[tenant, order.id]");
    for (producer, key, id) in [
        (
            by_id.clone(),
            "op#b23686f25e6691405e50cafda24d8ecc8ece665512cfb141a2460075bffcd9a8",
            "5e6814b11cf8e1c1d8d5c5123ed75afe40370f6351f6ea3f484b4baea56b2574",
        ),
        (
            producer("[tenant, order.id]"),
            "op#80a58f5eb79b944a934de9c6504f2f9bf1ebb2995eeb6d0cae5d2a237d5c379b",
            "6682b8334ae2654fa9e9bd82eaa2bc44d63a5b6b17d4a15f72b54b6a6e4932fe",
        ),
        (
            spec().key_format(KeyFormat::Readable).producer().unwrap(),
            "op#~/acme/+42",
            "b71ce3ee3428c993067e802267f504da102b358ac5408f15471ccdb7c22af9f2",
        ),
        (
            spec().key_format(KeyFormat::Readable).producer().unwrap().for_tenant("t-1"),
            "op#~@t-1/acme/+42",
            "1da5132b37128d51b2bba505ce16995e1b032483b5bb9c79a4bca5193b483db8",
        ),
        (
            spec().key_format(secret).producer().unwrap(),
            "op#hmac-fd830fa8688fab36686da263433a8884e50d388ae38500705645cfc1ad5c8c78",
            "ad1827c7f6dd24a65cb76f5f53c7d9131c3a29697586896e8250dc1b296525a4",
        ),
        (
            by_id.for_tenant("t-1"),
            "op#dfbe9453bd3cc4ae342ce267088b702388813035e1349b227354f7072440c783",
            "ac2fb6768c8998bc8256b83f7f35800c433e61b51056d9916a779bb1e6fd840a",
        ),
        (
            spec().powertools(PowertoolsKeys::python("fn.app.place")).producer().unwrap(),
            "fn.app.place#644bdf82be57b1cee5b7150bfb36bf45",
            "c739b12efb59227fb03b7a3b9a133921b8d1ea11e5781538fab62d6eedfa7228",
        ),
    ] {
        let message = producer.message_of(ORDER).unwrap();
        assert_eq!((message.key().as_str(), &*message.deduplication_id()), (key, id));
    }
}

/// Producers refuse the same payloads as consumers. The error has the remedy, and not the payload.
#[test]
fn refusals_name_the_operation_and_the_remedy() {
    for (payload, expected) in [
        (r#"{"id":"s3cr3t""#, "the payload is not valid JSON: it ends too early"),
        ("s3cr3t", "; send JSON"),
        (r#"{"s3cr3t":1}"#, "under `[id, at]`: part 1 of it selects nothing (or null)"),
        (r#"{"id":"s3cr3t","at":[]}"#, "part 2 of it selects something empty"),
        (r#"{"id":0.1000000000000000055,"at":"s3cr3t"}"#, "send it as a string"),
        (r#"{"id":"s3cr3t","id":1,"at":1}"#, "two members of the same name"),
    ] {
        let error = producer("[id, at]").message_of(payload).unwrap_err().to_string();
        assert!(error.starts_with("the payload for operation `op` has no key: "), "{error}");
        assert!(error.contains(expected) && !error.contains("s3cr3t"), "{error}");
    }
    let long = format!("\"{}\"", "a".repeat(8 << 20));
    let error = producer("@").message_of(long).unwrap_err().to_string();
    assert!(error.contains("at most 8388608 are read"), "{error}");
    let error = producer("@").key_of_bytes(&[b'"', 0xff, b'"']).unwrap_err();
    let reason = PayloadError::NotText;
    assert_eq!(error, ProducerError::Rejected { operation: "op".into(), reason });
    let odd = std::collections::BTreeMap::from([((1, 2), "s3cr3t")]);
    let error = producer("@").message(&odd).unwrap_err().to_string();
    assert!(error.contains("correct its `Serialize`") && !error.contains("s3cr3t"), "{error}");
}

/// Powertools keys do not contain the tenant, so two tenants could share a key.
#[test]
fn a_tenant_with_powertools_keys_is_refused_by_the_producer_too() {
    let python = PowertoolsKeys::python("fn.app.place");
    let of = |powertools: PowertoolsKeys| {
        KeySpec::new("op", "tenant").powertools(powertools).producer().unwrap()
    };
    let error = of(python.clone()).for_tenant("t-1").key(ORDER).unwrap_err();
    let ProducerError::Rejected { reason: PayloadError::Key { error, .. }, .. } = error else {
        panic!("{error}");
    };
    assert!(matches!(error, SelectionError::Collision(_)), "{error}");
    let lossy = of(python.accept_collisions());
    assert_eq!(lossy.for_tenant("t-1").key(ORDER), lossy.key(ORDER));
}

#[test]
fn the_key_is_made_from_the_text_that_is_sent() {
    let order = serde_json::json!({ "id": 7, "note": "s3cr3t" });
    let message = producer("id").message(&order).unwrap();
    assert_eq!(message.body(), order.to_string());
    assert_eq!(message.key(), &key("id", message.body()).unwrap());
    assert_eq!(producer("id").key_of_bytes(message.body().as_bytes()).as_ref(), Ok(message.key()));
    let shown = format!("{message:?}");
    assert!(shown.starts_with("Message { key: Key(op#") && !shown.contains("s3cr3t"), "{shown}");
    assert_eq!(message.into_body(), order.to_string());
}

proptest! {
    #![proptest_config(cases(512))]

    /// SQS and SNS accept all ids, because an id has a fixed length and only hexadecimal digits.
    #[test]
    fn ids_are_what_sqs_and_sns_accept(text in any::<String>()) {
        let id = deduplication_id(&Key::from_text(text));
        prop_assert_eq!(id.len(), 64);
        prop_assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

}
