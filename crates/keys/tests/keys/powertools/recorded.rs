//! Every recorded case, with `accept_collisions`: the same key and fingerprint, or an error in both.

use lambda_idempotency_keys::SelectionError;
use lambda_idempotency_keys::powertools::{
    HashFunction, PowertoolsDocument, PowertoolsExpression, PowertoolsKeys, PowertoolsLanguage,
};
use serde_json::Value;

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
) -> [Option<String>; 2] {
    let hash = case["hash"].as_str().map_or(HashFunction::Md5, |name| name.parse().unwrap());
    let prefix = case["prefix"].as_str().unwrap_or(" p ");
    let powertools = powertools(prefix.to_owned()).hash_function(hash).accept_collisions();
    let json = case["json"].as_str().unwrap_or(document);
    let document = powertools.read(json);
    let expression = case["expression"].as_str().map(|text| powertools.compile(text)).transpose();
    let expression = match expression {
        Ok(expression) => expression,
        Err(error) => return [Some(format!("error: {error}")), None],
    };
    if let (Ok(document), None) = (&document, &expression) {
        results_have_the_hashed_format(&powertools, json, document);
    }
    let whole = powertools.compile("@").unwrap();
    let key = |document: &PowertoolsDocument| match powertools.key(document, expression.as_ref()) {
        Ok(key) => key.as_str().to_owned(),
        Err(SelectionError::Missing | SelectionError::Empty) => "missing".to_owned(),
        Err(error) => format!("error: {error}"),
    };
    let fingerprint = |document: &PowertoolsDocument, path: &PowertoolsExpression| {
        Some(powertools.fingerprint(document, path).ok()?.as_str().to_owned())
    };
    match document {
        Ok(document) => {
            [Some(key(&document)), fingerprint(&document, expression.as_ref().unwrap_or(&whole))]
        }
        Err(error) => [Some(format!("error: {error}")), None],
    }
}

/// In Python, results and hashed values have the same JSON format.
fn results_have_the_hashed_format(
    powertools: &PowertoolsKeys,
    json: &str,
    document: &PowertoolsDocument,
) {
    if powertools.language() == PowertoolsLanguage::Python
        && let Ok(selection) = powertools.select(document, None)
    {
        assert_eq!(powertools.result(json).unwrap().as_bytes(), selection.canonical_bytes());
    }
}

fn check(language: &str, powertools: fn(String) -> PowertoolsKeys) {
    let (document, cases) = vectors(language);
    assert!(cases.len() >= 950, "{}", cases.len());
    let mut differences = Vec::new();
    for case in &cases {
        let [key, fingerprint] = outcome(powertools, &document, case);
        let key = key.unwrap();
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
