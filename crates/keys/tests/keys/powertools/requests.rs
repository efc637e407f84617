//! The keys and fingerprints in the recorded requests of each library.

use lambda_idempotency_keys::SelectionError;
use lambda_idempotency_keys::powertools::PowertoolsKeys;
use serde_json::Value;

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
        let payload = powertools.read(vector["payload_json"].as_str().unwrap()).unwrap();
        let expression = config("event_key_jmespath").map(|text| powertools.compile(text).unwrap());
        let key = powertools.key(&payload, expression.as_ref());
        let Some(recorded) = vector["idempotency_key"].as_str() else {
            let missing = SelectionError::Missing;
            assert!(matches!(key, Err(SelectionError::Empty)) || key == Err(missing), "{name}");
            continue;
        };
        assert_eq!(key.unwrap().as_str(), recorded, "{name}");
        let hashed = powertools.select(&payload, expression.as_ref()).unwrap();
        let expected = vector["hash_input"].as_str().unwrap();
        assert_eq!(hashed.canonical_bytes(), expected.as_bytes(), "{name}");

        let item = &vector["calls"][0]["request"]["Item"];
        let validation = config("payload_validation_jmespath");
        let fingerprint = validation.map(|text| {
            let path = powertools.compile(text).unwrap();
            powertools.fingerprint(&payload, &path).unwrap().as_str().to_owned()
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
        let powertools = PowertoolsKeys::python("any");
        for call in vector["calls"].as_array().unwrap() {
            let values = &call["request"]["ExpressionAttributeValues"];
            if let Some(data) = values[":response_data"]["S"].as_str() {
                let compact: Value = serde_json::from_str(data).unwrap();
                assert_eq!(powertools.result(&compact.to_string()).as_deref(), Some(data));
            }
        }
    }
}

#[test]
fn typescript() {
    let vectors = vectors(include_str!("vectors/requests-typescript.json"));
    check(&vectors, |prefix| PowertoolsKeys::typescript(prefix.unwrap_or("orders-fn")));
}
