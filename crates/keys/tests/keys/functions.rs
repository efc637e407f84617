//! Functions that decode a text.

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_idempotency_keys::SelectionError;
use percent_encoding::{
    AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode,
};
use proptest::prelude::*;
use serde_json::json;

use crate::{
    json::{json, text},
    support::{cases, selected},
};

/// The characters of ASCII that are not themselves in a URL-encoded text.
const NEEDED: &AsciiSet = &CONTROLS.add(b' ').add(b'+').add(b'%');
/// Parts of URL-encoded texts, and of others.
const TOKENS: &[&str] = &["x", "+", "/", "%41", "%c3%B6", "%FF", "%2B", "%", " ", "é", "\u{7f}"];
const REFUSED: [&str; 4] = ["%", " ", "é", "\u{7f}"];

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
        ("url_decode(o)", "url_decode() takes a string, and this is of type object"),
    ] {
        let error = selected(expression, json).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("eyJ"), "{error}");
    }
}

/// As the keys of objects in notifications of S3.
#[test]
fn url_encoded_texts_are_decoded_strictly() {
    let decoded = |text: &str| selected("url_decode(@)", &json!(text).to_string());
    for (text, expected) in [
        ("my+photo%20.jpg", "my photo .jpg"),
        ("2026/a%2Bb%28c%29.jpg", "2026/a+b(c).jpg"),
        ("gr%C3%B6%c3%9fe", "größe"),
        ("%F0%9F%98%80", "😀"),
        ("100%25", "100%"),
        ("%2525", "%25"),
        ("!~", "!~"),
    ] {
        assert_eq!(decoded(text), Ok(json!(expected).to_string()), "{text}");
    }
    assert_eq!(decoded(""), Err(SelectionError::Empty));
    assert_eq!(decoded("%00%1f").unwrap(), r#""\u0000\u001f""#);
    for (refused, reason) in [
        ("100%", "two hexadecimal digits"),
        ("100%2", "two hexadecimal digits"),
        ("%2", "two hexadecimal digits"),
        ("%zz", "two hexadecimal digits"),
        ("%+1", "two hexadecimal digits"),
        ("%%32%35", "two hexadecimal digits"),
        ("%C3", "not UTF-8"),
        ("%ff", "not UTF-8"),
        ("%ED%A0%80", "not UTF-8"),
        ("my photo.jpg", "has a character that is written as `%XX`"),
        ("größe", "has a character that is written as `%XX`"),
        ("a\tb", "has a character that is written as `%XX`"),
        ("a\u{7f}", "has a character that is written as `%XX`"),
    ] {
        let error = decoded(refused).unwrap_err().to_string();
        assert!(error.contains("url_decode(): ") && error.contains(reason), "{refused}: {error}");
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn what_was_url_encoded_is_the_text_again(
        text in text().prop_filter("no key", |text| !text.is_empty()), only_needed in any::<bool>(),
    ) {
        let set = if only_needed { NEEDED } else { NON_ALPHANUMERIC };
        let encoded = utf8_percent_encode(&text, set).to_string();
        let record = json!({ "plain": text, "encoded": encoded.replace("%20", "+") }).to_string();
        prop_assert_eq!(selected("url_decode(encoded)", &record), selected("plain", &record));
    }

    /// As another decoder does, which accepts what is refused here.
    #[test]
    fn a_url_encoded_text_is_read_in_one_way(
        tokens in prop::collection::vec(prop::sample::select(TOKENS), 1..6),
    ) {
        let text = tokens.concat();
        let is_refused = tokens.iter().any(|token| REFUSED.contains(token));
        let spaces = text.replace('+', " ");
        let theirs = percent_decode_str(&spaces).decode_utf8().ok().filter(|_| !is_refused);
        let ours = selected("url_decode(@)", &json!(text).to_string()).ok();
        prop_assert_eq!(ours, theirs.map(|theirs| json!(theirs).to_string()), "{}", text);
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
