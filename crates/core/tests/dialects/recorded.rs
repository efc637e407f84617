//! Every recorded case, under `accept_lossy`: the same key, the same fingerprint, or none.

use lambda_idempotency_core::key::{
    SelectionError,
    dialect::{Dialect, DialectDocument, DialectExpression, HashFunction},
};
use serde_json::Value;

fn vectors(library: &str) -> (String, Vec<Value>) {
    let text = match library {
        "python" => include_str!("vectors/python.json"),
        _ => include_str!("vectors/typescript.json"),
    };
    let mut vectors: Value = serde_json::from_str(text).unwrap();
    let Value::Array(cases) = vectors["cases"].take() else { panic!("cases") };
    (vectors["document"].as_str().unwrap().to_owned(), cases)
}

/// What a case comes to here, in the form in which it was recorded.
fn outcome(dialect: Dialect, document: &str, case: &Value) -> [Option<String>; 2] {
    let hash = case["hash"].as_str().map_or(HashFunction::Md5, |name| name.parse().unwrap());
    let dialect = dialect.hash_function(hash).accept_lossy();
    let json = case["json"].as_str().unwrap_or(document);
    let document = dialect.read(json);
    let expression = case["expression"].as_str().map(|text| dialect.compile(text)).transpose();
    let expression = match expression {
        Ok(expression) => expression,
        Err(error) => return [Some(format!("error: {error}")), None],
    };
    let whole = dialect.compile("@").unwrap();
    let key = |document: &DialectDocument| match dialect.key(document, expression.as_ref()) {
        Ok(key) => key.to_string(),
        Err(SelectionError::Missing | SelectionError::Empty) => "missing".to_owned(),
        Err(error) => format!("error: {error}"),
    };
    let fingerprint = |document: &DialectDocument, path: &DialectExpression| {
        Some(dialect.fingerprint(document, path).ok()?.as_str().to_owned())
    };
    match document {
        Ok(document) => {
            [Some(key(&document)), fingerprint(&document, expression.as_ref().unwrap_or(&whole))]
        }
        Err(error) => [Some(format!("error: {error}")), None],
    }
}

fn check(library: &str, dialect: &Dialect) {
    let (document, cases) = vectors(library);
    assert!(cases.len() >= 600, "{}", cases.len());
    let mut differences = Vec::new();
    for case in &cases {
        let [key, fingerprint] = outcome(dialect.clone(), &document, case);
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
    check("python", &Dialect::powertools_python("p"));
}

#[test]
fn typescript() {
    check("typescript", &Dialect::powertools_typescript(" p "));
}
