//! Expressions, documents, keys and producers.

use lambda_idempotency::powertools::PowertoolsKeys;
use lambda_idempotency_keys::{Document, Expression, KeyFormat, Scope, Secret, producer::KeySpec};
use serde_json::json;

use super::shown::{SECRET, Shown};

/// Expressions that fail in many ways, on a document that consists of secrets.
#[test]
fn expressions_documents_and_keys() {
    let shown = Shown::default();
    let text = json!({
        "id": SECRET, "list": [SECRET, 1, null], "none": null, "empty": "", "n": 0.1,
        "object": { "a": SECRET }, "text": format!("{{\"{SECRET}\": "), "b64": "czNjcjN0",
    });
    let document = Document::parse(&text.to_string()).unwrap();
    shown.debug(&document);
    let expressions = [
        "id",
        "none",
        "empty",
        "nowhere",
        "[id, nowhere]",
        "{a: id, b: none}",
        "[id, empty]",
        "json(text)",
        "json(id)",
        "json(list)",
        "json(b64)",
        "list[*].a",
        "list[*]",
        "object.[a, b]",
        "powertools_json(text)",
        "powertools_base64(id)",
        "powertools_base64_gzip(b64)",
        "base64(id)",
        "base64(n)",
        "base64_gzip(b64)",
        "base64_gzip(id)",
        "not_null(none, nowhere)",
        "[object.a, not_null(none)]",
        "length(id)",
        "id == 'a'",
    ];
    let mut refused = 0;
    for text in expressions {
        match Expression::compile(text) {
            Ok(expression) => match expression.select(&document) {
                Ok(selection) => {
                    shown.debug(&selection);
                    shown.debug(&(Scope { operation: "op", tenant: None }.key(&selection)));
                }
                Err(error) => {
                    refused += 1;
                    shown.error(&error);
                }
            },
            Err(error) => shown.error(&error),
        }
    }
    assert!(refused > 15, "{refused}");
    for powertools in [PowertoolsKeys::python("p"), PowertoolsKeys::typescript("t")] {
        let document = powertools.read(&text.to_string()).unwrap();
        shown.debug(&document);
        for text in expressions {
            match powertools.compile(text) {
                Ok(expression) => match powertools.key(&document, Some(&expression)) {
                    Ok(key) => shown.debug(&key),
                    Err(error) => shown.error(&error),
                },
                Err(error) => shown.error(&error),
            }
        }
    }
    for text in [
        format!("{{\"{SECRET}\""),
        format!("{{\"{SECRET}\":1,\"{SECRET}\":2}}"),
        SECRET.to_owned(),
        format!("[\"{SECRET}\", 1e999]"),
        format!("[\"{SECRET}\\q\"]"),
    ] {
        shown.error(&Document::parse(&text).unwrap_err());
        for powertools in [PowertoolsKeys::python("p"), PowertoolsKeys::typescript("t")] {
            if let Err(error) = powertools.read(&text) {
                shown.error(&error);
            }
        }
    }
    shown.debug(&Secret::new(SECRET.repeat(8)).unwrap());
    shown.error(&Secret::new(SECRET).unwrap_err());
    shown.assert_silent(&["Selection", "Document", "PowertoolsDocument", "Secret", "at line"]);
}

#[test]
fn producers_messages_and_errors() {
    let shown = Shown::default();
    let by_id = || KeySpec::new("op", "[id, at]");
    let secret = KeyFormat::Secret(Secret::new(format!("{SECRET} that is long enough")).unwrap());
    for spec in [by_id().key_format(KeyFormat::Readable), by_id().key_format(secret)] {
        shown.debug(&spec);
        let producer = spec.producer().unwrap().for_tenant("t-1");
        shown.debug(&producer);
        let message = producer.message(&json!({ "id": SECRET, "at": 1, "note": SECRET })).unwrap();
        shown.debug(&message);
        for body in [
            json!({ "id": SECRET }).to_string(),
            json!({ "id": SECRET, "at": "", SECRET: SECRET }).to_string(),
            format!("{{\"id\":\"{SECRET}\",\"at\":0.1000000000000000055}}"),
            SECRET.to_owned(),
        ] {
            shown.error(&producer.message_of(body).unwrap_err());
        }
        shown.error(&producer.key_of_bytes(&[SECRET.as_bytes(), &[0xff]].concat()).unwrap_err());
        let odd = std::collections::BTreeMap::from([((SECRET, 1), SECRET)]);
        shown.error(&producer.message(&odd).unwrap_err());
    }
    let refusing = KeySpec::without_key("op").key_fn(|_| Err("it is refused"));
    shown.debug(&refusing);
    shown.error(&refusing.producer().unwrap().key(SECRET).unwrap_err());
    shown.assert_silent(&["KeySpec {", "Producer {", "Message {", "part 2 of it", "as a string"]);
}
