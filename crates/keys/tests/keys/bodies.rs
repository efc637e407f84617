//! Properties that hold for any bytes: the bodies of the fuzz targets in `fuzz/`. The module `fuzz`
//! runs them with a limit on stable Rust.

use std::sync::LazyLock;

use lambda_idempotency_keys::{
    Document, DocumentError, Expression, FieldSet, Key, KeyFormat, Scope, Secret, Selection,
    powertools::{PowertoolsKeys, PowertoolsLanguage},
    producer::{KeySpec, KeySpecError, Made, Selector},
};

/// Expressions of every kind to apply to events; the first selects the whole event.
static EXPRESSIONS: LazyLock<[(Expression, FieldSet); 11]> = LazyLock::new(|| {
    [
        "@",
        "body",
        "[body, messageId]",
        "json(body)",
        "json(body).[id, order.id]",
        "messageAttributes.id.stringValue",
        "Records[*].{id: messageId, body: body}",
        "json(base64(kinesis.data)).id",
        "base64_gzip(awslogs.data)",
        "[s3.bucket.name, url_decode(s3.object.key)]",
        "not_null(id, [n, body])",
    ]
    .map(|text| {
        let expression = Expression::compile(text).unwrap();
        (expression.clone(), FieldSet::of([&expression]))
    })
});

/// The fields that all of them read. Some read the same nested JSON.
static READS: LazyLock<FieldSet> =
    LazyLock::new(|| FieldSet::of(EXPRESSIONS.iter().map(|(expression, _)| expression)));

/// Expressions for events with Powertools keys.
const POWERTOOLS_EXPRESSIONS: [&str; 6] = [
    "@",
    "a.b[*].c",
    "[a.b, powertools_json(body).id]",
    "c[-1].[a, b]",
    "Records[*].[messageId, powertools_base64_gzip(body)]",
    "not_null(n, powertools_base64(b))",
];

/// Events for the expressions.
const EVENTS: [&str; 4] = [
    r#"{"a":{"b":[1,2.5,"x",null,{"c":"{\"d\":1}"}]},"t":"12","n":-0,"u":[[],{}]}"#,
    r#"{"a":[0.1000000000000000055,{"a":[3,1,2]}],"b":"eyJpZCI6IjcifQ==","c":[["b"],["a"]]}"#,
    "[[1,2,3],[\"a\",\"b\"],{\"a\":{\"a\":{\"a\":1}}}]",
    "\"text\"",
];

/// Any bytes as an event.
pub(crate) fn event_bytes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let document = Document::parse(&text);
    assert!(document.is_err() || is_json(&text), "a text that is not JSON was accepted: {text}");
    if let Err(error) = &document {
        assert!(!error.to_string().is_empty());
    }
    let together = Document::read(&text, &READS);
    assert_eq!(together.is_ok(), document.is_ok());
    for (expression, reads) in &*EXPRESSIONS {
        if let (Ok(document), Ok(together)) = (&document, &together) {
            assert_eq!(expression.evaluate(document), expression.evaluate(together));
        }
        let sparse = Document::read(&text, reads);
        if let Ok(document) = &document {
            // Text that parses as a whole also parses in part, and fields that the expression does
            // not read make no difference.
            let sparse = sparse.unwrap();
            assert_eq!(expression.evaluate(document), expression.evaluate(&sparse));
            keys(expression, document);
            assert_eq!(expression.select(document), expression.select(&sparse));
        } else if let Ok(sparse) = sparse {
            keys(expression, &sparse);
        }
    }
}

/// Whether `serde_json` accepts the text as JSON.
///
/// With its feature `arbitrary_precision`, which other crates of a build may turn on, its `Value`
/// takes an object with a private field name for a number. Only the syntax of such texts is checked.
fn is_json(text: &str) -> bool {
    if text.contains("serde_json::private") {
        serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
    } else {
        serde_json::from_str::<serde_json::Value>(text).is_ok()
    }
}

/// Any bytes as an expression, if it is short enough to be evaluated in little time.
pub(crate) fn expression_bytes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let expression = match Expression::compile(&text) {
        Ok(expression) => expression,
        Err(error) => {
            assert!(error.offset() <= text.chars().count());
            assert!(!error.to_string().is_empty() && !error.reason().is_empty());
            return;
        }
    };
    if doubles(&text) {
        return;
    }
    for json in EVENTS {
        let document = Document::parse(json).unwrap();
        let sparse = Document::read(json, &FieldSet::of([&expression])).unwrap();
        assert_eq!(expression.evaluate(&document), expression.evaluate(&sparse));
        assert_eq!(expression.select(&document), expression.select(&sparse));
        keys(&expression, &document);
    }
}

/// Makes the keys of an operation with Powertools keys.
pub(crate) fn selector(keys: &PowertoolsKeys, expression: &str) -> Result<Selector, KeySpecError> {
    let compiled = KeySpec::new("op", expression).powertools(keys.clone()).compile(None)?;
    Ok(compiled.key.unwrap())
}

/// The key that it makes of a JSON text, and the text that is hashed.
pub(crate) fn made(selector: &Selector, json: &str) -> Made<(Key, Selection)> {
    let scope = Scope { operation: "op", tenant: None };
    selector.key(json, || panic!("it reads the text itself"), (&KeyFormat::Hashed, &scope))
}

/// Any bytes as an expression and as an event of the other libraries.
pub(crate) fn powertools_bytes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let is_json = serde_json::from_str::<serde_json::Value>(&text).is_ok();
    for language in [PowertoolsLanguage::Python, PowertoolsLanguage::TypeScript] {
        let powertools = PowertoolsKeys::of(language, "p");
        for expression in POWERTOOLS_EXPRESSIONS {
            if let Err(error) = check_powertools_keys(&powertools, expression, &text) {
                // Python reads no integer of more than 4300 digits.
                assert!(!is_json || language == PowertoolsLanguage::Python, "it is JSON: {error}");
                assert!(!error.to_string().is_empty());
            }
        }
        match selector(&powertools, &text) {
            Ok(_) if !doubles(&text) => EVENTS
                .iter()
                .for_each(|event| check_powertools_keys(&powertools, &text, event).unwrap()),
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

/// A key without a collision is the same with collisions accepted, and the same each time.
fn check_powertools_keys(
    powertools: &PowertoolsKeys,
    expression: &str,
    json: &str,
) -> Result<(), DocumentError> {
    let strict = selector(powertools, expression).unwrap();
    let selected = made(&strict, json)?;
    assert_eq!(made(&strict, json).as_ref(), Ok(&selected));
    let accepted =
        made(&selector(&powertools.clone().accept_collisions(), expression).unwrap(), json)?;
    match selected {
        Ok((key, _)) => {
            assert_eq!(accepted.map(|(key, _)| key).as_ref(), Ok(&key));
            assert!(key.as_str().starts_with("p#"));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    Ok(())
}

/// Whether an expression has many operators that can double the selected value, so that it takes long.
fn doubles(expression: &str) -> bool {
    expression.matches(['[', '{', '*']).count() > 12
}

fn keys(expression: &Expression, document: &Document) {
    let selection = match expression.select(document) {
        Ok(selection) => selection,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    // Canonical bytes are JSON, whose canonical bytes are the same.
    let canonical = std::str::from_utf8(selection.canonical_bytes()).unwrap();
    let [(at, _), ..] = &*EXPRESSIONS;
    if let Ok(again) = Document::parse(canonical) {
        assert_eq!(at.select(&again).as_ref(), Ok(&selection));
    } else {
        // Values may be nested more deeply than documents: an expression puts lists around them.
        assert!(canonical.matches(['[', '{']).count() > 100, "{canonical}");
    }
    let scope = Scope { operation: "op", tenant: None };
    let secret = KeyFormat::Secret(Secret::new("a secret for fuzzing").unwrap());
    let [hashed, readable, with_secret] = [KeyFormat::Hashed, KeyFormat::Readable, secret]
        .map(|format| format.key(&scope, &selection));
    assert_ne!(with_secret, hashed);
    assert_ne!(with_secret, readable);
    assert!(readable == hashed || readable.as_str().starts_with("op#~"));
    assert!(readable == hashed || readable.hash() != hashed.hash());
}
