//! Every recorded case, with `accept_collisions`: the same key and fingerprint, or an error in both.

use lambda_idempotency_keys::{
    KeyFormat, SelectionError,
    powertools::{HashFunction, PowertoolsKeys},
};
use serde_json::Value;

use crate::bodies::{made, selector};

/// The recordings in the repository, or those in the directory `POWERTOOLS_VECTORS`.
fn vectors(language: &str) -> (String, Vec<Value>) {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/powertools/vectors");
    let directory = std::env::var("POWERTOOLS_VECTORS").unwrap_or_else(|_| ours.to_owned());
    let text = std::fs::read_to_string(format!("{directory}/{language}.json")).unwrap();
    let mut vectors: Value = serde_json::from_str(&text).unwrap();
    let Value::Array(cases) = vectors["cases"].take() else { panic!("cases") };
    (vectors["document"].as_str().unwrap().to_owned(), cases)
}

/// The key and the fingerprint of a case, in the format of the recording.
fn outcome(
    powertools: fn(String) -> PowertoolsKeys,
    document: &str,
    case: &Value,
    is_python: bool,
) -> (String, Option<String>) {
    let hash = case["hash"].as_str().map_or(HashFunction::Md5, |name| name.parse().unwrap());
    let prefix = case["prefix"].as_str().unwrap_or(" p ");
    let powertools = powertools(prefix.to_owned()).hash_function(hash).accept_collisions();
    let json = case["json"].as_str().unwrap_or(document);
    let selector = match selector(&powertools, case["expression"].as_str().unwrap_or("@")) {
        Ok(selector) => selector,
        Err(error) => return (format!("error: {error}"), None),
    };
    let key = match made(&selector, json) {
        Ok(Ok((key, hashed))) => {
            // In Python, results and hashed values have the same JSON format.
            if is_python && case["expression"].is_null() {
                assert_eq!(selector.result(json.to_owned()).as_bytes(), hashed.canonical_bytes());
            }
            key.as_str().to_owned()
        }
        Ok(Err(SelectionError::Missing | SelectionError::Empty)) => "missing".to_owned(),
        Ok(Err(error)) => format!("error: {error}"),
        Err(error) => format!("error: {error}"),
    };
    let document = || panic!("it reads the text itself");
    let fingerprint = selector.fingerprint(json, document, &KeyFormat::Hashed);
    (key, fingerprint.ok().and_then(Result::ok))
}

fn check(language: &str, powertools: fn(String) -> PowertoolsKeys) {
    let (document, cases) = vectors(language);
    assert!(cases.len() >= 950, "{}", cases.len());
    let mut differences = Vec::new();
    for case in &cases {
        let (key, fingerprint) = outcome(powertools, &document, case, language == "python");
        let same_key = match (case["key"].as_str(), case["missing"].as_bool()) {
            (Some(recorded), _) => key == recorded,
            (None, Some(true)) => key == "missing",
            _ => key.starts_with("error"),
        };
        let validation = case["validation"].as_str();
        let same_fingerprint = validation.is_none() || validation == fingerprint.as_deref();
        if !(same_key && same_fingerprint) {
            differences.push(format!("{case}: {key} {fingerprint:?}"));
        }
    }
    differences.sort_by_key(String::len);
    assert!(
        differences.is_empty(),
        "{}:\n{}",
        differences.len(),
        differences[..differences.len().min(20)].join("\n")
    );
}

#[test]
fn python() {
    check("python", PowertoolsKeys::python);
}

#[test]
fn typescript() {
    check("typescript", PowertoolsKeys::typescript);
}
