//! The results of the reference, `jmespath.py`, for many expressions and documents. They equal ours,
//! except in the explained cases. `reference/record.py` records them.

use lambda_idempotency_keys::{Document, Expression, SelectionError};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Recorded {
    documents: Vec<String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    document: usize,
    expression: String,
    /// As JSON text, so that its numbers are exact.
    result: Option<String>,
    error: Option<String>,
}

fn evaluate(expression: &str, document: &Document) -> Result<Value, String> {
    let expression =
        Expression::compile(expression).map_err(|e| format!("start: {}", e.reason()))?;
    expression.evaluate(document).map_err(|error| match error {
        SelectionError::InexactNumber => "inexact".to_owned(),
        error => error.to_string(),
    })
}

/// By value, as JMESPath compares: exactly.
fn same(one: &str, other: &str) -> bool {
    let both = Document::parse(&format!("[{one},{other}]")).unwrap();
    evaluate("[0] == [1]", &both) == Ok(Value::Bool(true))
}

/// Mistakes that we refuse when a function starts, and the reference at evaluation, or not at all.
const AT_START: [&str; 11] = [
    "the step of a slice cannot be 0",
    "argument(s), not",
    "there is no function",
    // `sum` and `avg`.
    "is not available",
    "takes an expression reference",
    "is not a value",
    "two parts are named",
    // For the reference, a member of a list is null.
    "is a list, which has no member",
    "a number that a double cannot hold",
    // The reference reads literals that are not JSON as text.
    "not valid JSON",
    // The reference accepts missing commas and one comma too many.
    "expected",
];

/// The reason why our result differs, if that is by design.
fn explained(case: &Case, ours: &Result<Value, String>) -> Option<&'static str> {
    let error = ours.as_ref().err().map_or("", String::as_str);
    let expression: String = case.expression.split_whitespace().collect();
    let result_is_inexact = || {
        let result = Document::parse(case.result.as_deref().unwrap_or("0"));
        result.is_ok_and(|result| evaluate("@", &result) == Err("inexact".to_owned()))
    };
    if error.starts_with("start: ") && AT_START.iter().any(|reason| error.contains(reason)) {
        return Some("refused at start");
    }
    if error == "inexact" && (result_is_inexact() || expression.contains("to_string")) {
        return Some("a number that no double represents exactly is not a key");
    }
    if error.contains("merge() takes objects") {
        return Some("the reference checks only the first argument of `merge`");
    }
    let double = |text: &str| text.parse::<f64>().ok();
    let ours = ours.as_ref().map_or(String::new(), ToString::to_string);
    if double(&ours).is_some() && double(&ours) == case.result.as_deref().and_then(double) {
        return Some("a double that can be written in two ways of one length");
    }
    // `a.*.b.c` selects `c` from the list of all `b`, and `a[0][1:].b` projects nothing.
    let stars = expression.replace("[*]", "");
    if stars.contains("*.") || stars.contains("*[") {
        return Some("a step after `.*`");
    }
    if expression.contains("][") && expression.contains(':') {
        return Some("a slice after brackets");
    }
    None
}

#[test]
fn every_recorded_case() {
    let ours = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/reference/cases.json");
    let path = std::env::var("REFERENCE_CASES").unwrap_or_else(|_| ours.to_owned());
    let recorded: Recorded = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let documents: Vec<_> =
        recorded.documents.iter().map(|json| Document::parse(json).unwrap()).collect();
    let (mut unexplained, mut tally) = (Vec::new(), std::collections::BTreeMap::new());
    for case in &recorded.cases {
        let ours = evaluate(&case.expression, &documents[case.document]);
        let is_same = match (&case.result, &ours) {
            (Some(result), Ok(value)) => same(result, &value.to_string()),
            (None, Err(_)) => true,
            _ => false,
        };
        if is_same {
            continue;
        }
        match explained(case, &ours) {
            Some(reason) => *tally.entry(reason).or_insert(0) += 1,
            None => unexplained.push(format!(
                "`{}` of {}: {:?}{:?}, not {ours:?}",
                case.expression, case.document, case.result, case.error
            )),
        }
    }
    unexplained.sort_by_key(String::len);
    let few = unexplained.iter().take(40).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(unexplained.is_empty(), "{}:\n{few}\n{tally:?}", unexplained.len());
    println!("{} cases; of these {tally:?}", recorded.cases.len());
}
