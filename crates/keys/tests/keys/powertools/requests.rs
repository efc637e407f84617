//! The keys and fingerprints in the recorded requests of each library.

use lambda_idempotency_keys::{KeyFormat, SelectionError, powertools::PowertoolsKeys};
use serde_json::Value;

use crate::bodies::{made, selector};

fn vectors(text: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(text).unwrap();
    vectors["vectors"].as_array().unwrap().clone()
}

fn check(vectors: &[Value], powertools: impl Fn(Option<&str>) -> PowertoolsKeys) {
    assert!(vectors.len() >= 38);
    let mut fingerprints = 0;
    for vector in vectors {
        let name = vector["name"].as_str().unwrap();
        let config = |option: &str| vector["config"][option].as_str();
        let powertools = powertools(config("key_prefix")).accept_collisions();
        let payload = vector["payload_json"].as_str().unwrap();
        let of = |expression| selector(&powertools, expression).unwrap();
        let key = made(&of(config("event_key_jmespath").unwrap_or("@")), payload).unwrap();
        let Some(recorded) = vector["idempotency_key"].as_str() else {
            let is_missing = matches!(key, Err(SelectionError::Empty | SelectionError::Missing));
            assert!(is_missing, "{name}");
            continue;
        };
        let (key, hashed) = key.unwrap();
        assert_eq!(key.as_str(), recorded, "{name}");
        let expected = vector["hash_input"].as_str().unwrap();
        assert_eq!(hashed.canonical_bytes(), expected.as_bytes(), "{name}");

        let item = &vector["calls"][0]["request"]["Item"];
        let validation = config("payload_validation_jmespath");
        let fingerprint = validation.map(|text| {
            let document = || panic!("it reads the text itself");
            of(text).fingerprint(payload, document, &KeyFormat::Hashed).unwrap().unwrap()
        });
        fingerprints += usize::from(fingerprint.is_some());
        assert_eq!(fingerprint.as_deref(), item["validation"]["S"].as_str(), "{name}");
    }
    assert!(fingerprints > 0);
}

#[test]
fn python() {
    let vectors = vectors(include_str!("vectors/requests-python.json"));
    check(&vectors, |prefix| PowertoolsKeys::python(prefix.unwrap_or("orders-fn.app.process")));
    for vector in &vectors {
        let selector = selector(&PowertoolsKeys::python("any"), "@").unwrap();
        for call in vector["calls"].as_array().unwrap() {
            let values = &call["request"]["ExpressionAttributeValues"];
            if let Some(data) = values[":response_data"]["S"].as_str() {
                let compact: Value = serde_json::from_str(data).unwrap();
                assert_eq!(selector.result(compact.to_string()), data);
            }
        }
    }
}

#[test]
fn typescript() {
    let vectors = vectors(include_str!("vectors/requests-typescript.json"));
    check(&vectors, |prefix| PowertoolsKeys::typescript(prefix.unwrap_or("orders-fn")));
}
