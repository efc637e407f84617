//! The work that is measured: from a record's text to its key.

use lambda_idempotency_keys::{Document, Expression, FieldSet, Key, KeyFormat, Scope, Selection};

/// A record of 900 bytes, as SQS delivers it.
pub(crate) const RECORD: &str = r#"{"messageId":"059f36b4-87a3-44ab-83d2-661975830a7d","receiptHandle":"AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a+Wm9GfE2YQ5pHy8sKJ2nV3q1oRkqR4u0m3T4wXz7d9bH6cF5eAgQm1vTz0yWb8nKp4LrJd2UxEoSfHc7iVaZt9BqGM3lNuPwDkRjXy6O","body":"{\"tenant\":\"acme\",\"order\":{\"id\":\"o-2026-000042\",\"lines\":[{\"sku\":\"A-100\",\"quantity\":2,\"price\":19.95},{\"sku\":\"B-7\",\"quantity\":1,\"price\":5.5}]},\"amount\":45.4,\"currency\":\"EUR\",\"note\":\"leave at the door\"}","attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"1545082649183","SenderId":"AIDAIENQZJOLO23YVJ4VO","ApproximateFirstReceiveTimestamp":"1545082649185"},"messageAttributes":{"tenant":{"stringValue":"acme","stringListValues":[],"binaryListValues":[],"dataType":"String"}},"md5OfBody":"e4e68fb7bd0e697a0ae8f1bb342846b3","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:eu-west-1:123456789012:orders","awsRegion":"eu-west-1"}"#;

/// Its body, as the message's payload.
pub(crate) const BODY: &str = r#"{"tenant":"acme","order":{"id":"o-2026-000042","lines":[{"sku":"A-100","quantity":2,"price":19.95},{"sku":"B-7","quantity":1,"price":5.5}]},"amount":45.4,"currency":"EUR","note":"leave at the door"}"#;

/// Names, texts, and the expressions that are applied to each in one go.
pub(crate) const CASES: [(&str, &str, &[&str]); 9] = [
    ("key in the record's body", RECORD, &["json(body).order.id"]),
    ("key of two parts in the record's body", RECORD, &["json(body).[tenant, order.id]"]),
    ("key beside the body", RECORD, &["messageAttributes.tenant.stringValue"]),
    ("whole record", RECORD, &["@"]),
    (
        "key, fingerprint and group in the record",
        RECORD,
        &["json(body).[tenant, order.id]", "json(body).amount", "attributes.SenderId"],
    ),
    ("key in the payload", BODY, &["order.id"]),
    ("key of two parts in the payload", BODY, &["[tenant, order.id]"]),
    ("whole payload", BODY, &["@"]),
    (
        "key, fingerprint of a list and group in the payload",
        BODY,
        &["[tenant, order.id]", "order.lines", "tenant"],
    ),
];

/// What is known before the first record comes.
pub(crate) struct Prepared {
    expressions: Vec<Expression>,
    reads: FieldSet,
}

pub(crate) fn prepare(expressions: &[&str]) -> Prepared {
    let expressions: Vec<_> =
        expressions.iter().map(|text| Expression::compile(text).unwrap()).collect();
    Prepared { reads: FieldSet::of(&expressions), expressions }
}

/// Parse, evaluate, canonicalise.
pub(crate) fn select(text: &str, prepared: &Prepared) -> Vec<Selection> {
    let document = Document::read(text, &prepared.reads).unwrap();
    prepared.expressions.iter().map(|expression| expression.select(&document).unwrap()).collect()
}

/// The same, and hash.
pub(crate) fn extract(text: &str, prepared: &Prepared) -> Vec<Key> {
    let scope = Scope { operation: "place-order", tenant: None };
    select(text, prepared)
        .iter()
        .map(|selection| KeyFormat::Hashed.key(&scope, selection))
        .collect()
}

/// The yardstick: what parsing the record twice costs, which many handlers do anyway.
pub(crate) fn parse_twice() -> [serde_json::Value; 2] {
    [RECORD, RECORD].map(|text| serde_json::from_str(std::hint::black_box(text)).unwrap())
}

/// Payloads that are read in part and as a whole: one of some 150 bytes, one with a long text, one with
/// many lines.
#[allow(dead_code, reason = "the counts of instructions have no such cases")]
pub(crate) fn payloads() -> [(&'static str, String); 3] {
    let payload = |rest: &str| {
        format!(
            r#"{{"tenant":"acme","orderId":"o-2026-000042","amount":45.5,{rest},"currency":"EUR"}}"#
        )
    };
    let line = r#"{"sku":"SKU-000100","quantity":2,"price":19.5,"name":"a thing of this kind"}"#;
    let lines = |count: usize| format!(r#""lines":[{}]"#, vec![line; count].join(","));
    [
        ("small", payload(&lines(1))),
        ("one text of 256 KB", payload(&format!(r#""photo":"{}""#, "a".repeat(256 << 10)))),
        ("3,400 lines, 256 KB", payload(&lines(3_400))),
    ]
}
