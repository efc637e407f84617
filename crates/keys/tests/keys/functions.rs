//! Functions that decode a text.

use base64::{Engine, prelude::BASE64_STANDARD};
use proptest::prelude::*;

use crate::{
    json::json,
    support::{cases, selected},
};

#[test]
fn texts_are_decoded() {
    // {"id":"7"} in base64, and compressed by gzip in base64.
    let json = r#"{"plain":"eyJpZCI6IjcifQ==","o":{"text":"{\"id\":\"7\"}"},
        "packed":"H4sIAAAAAAACA6tWykxRslIyV6oFAEG0lfIKAAAA","text":"{\"id\":\"7\"}"}"#;
    for expression in [
        "json(text).id",
        "o.json(text).id",
        "json(base64(plain)).id",
        "base64_gzip(packed) | json(@).id",
        "[o.text] | [0] | json(@).id",
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok("\"7\""), "{expression}");
    }
    for (expression, part) in [
        ("base64(text)", "base64(): the text is not base64 (at offset 0)"),
        (
            "[o, base64_gzip(plain)]",
            "base64_gzip(): the text is not the base64 of gzip data (at offset 4)",
        ),
        ("base64(missing)", "base64() takes a string, and this is of type null"),
        ("json(o)", "json() takes a string, and this is of type object"),
        ("json(plain)", "json(): not valid JSON: a character that cannot stand there"),
    ] {
        let error = selected(expression, json).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("eyJ"), "{error}");
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn json_in_base64_is_read_as_json(
        value in json().prop_filter("no key", |value| !value.is_empty()),
        style in any::<u64>(),
    ) {
        let body = BASE64_STANDARD.encode(value.written(style));
        let record = format!("{{\"data\":\"{body}\"}}");
        prop_assert_eq!(selected("json(base64(data))", &record), selected("@", &value.written(0)));
    }
}
