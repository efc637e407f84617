//! Input at and beyond every limit has a defined result.

use std::io::Write as _;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use lambda_idempotency_keys::{Document, DocumentError, Expression, FieldSet, SelectionError};

use crate::support::selected;

const MIB: usize = 1 << 20;

#[test]
fn a_duplicate_member_is_refused() {
    for json in [
        r#"{"id":1,"id":1}"#,
        r#"{"id":1,"\u0069d":2}"#,
        r#"{"":1,"":2}"#,
        r#"[{"a":{"b":1,"b":2}}]"#,
    ] {
        let error = Document::parse(json).unwrap_err();
        assert!(matches!(error, DocumentError::DuplicateMember { .. }), "{json}: {error}");
    }
    for distinct in [r#"{"id":1,"Id":2,"iD":3}"#, r#"{"é":1,"e\u0301":2}"#, r#"{"a":{"a":1}}"#] {
        assert!(selected("@", distinct).is_ok(), "{distinct}");
    }
    let inside = r#"{"body":"{\"id\":1,\"id\":2}"}"#;
    assert!(
        selected("json(body).id", inside)
            .unwrap_err()
            .to_string()
            .contains("two members of the same name")
    );
}

#[test]
fn surrogates_without_their_other_half() {
    for lone in
        [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\udc00\ud800""#, r#""\ud83d.""#]
    {
        let refused = |json: &str| {
            let error = Document::parse(json).unwrap_err();
            assert!(error.to_string().contains("an invalid escape"), "{json}: {error}");
        };
        refused(lone);
        refused(&format!("{{{lone}:1}}"));
        let body = serde_json::to_string(lone).unwrap();
        let error = selected("json(body)", &format!("{{\"body\":{body}}}")).unwrap_err();
        assert!(matches!(error, SelectionError::Evaluation { .. }), "{error}");
    }
    assert_eq!(selected("@", r#""\ud83d\ude00""#).unwrap(), "\"😀\"");
    assert_eq!(
        selected("@", r#""\ufffd""#).unwrap(),
        "\"\u{fffd}\"",
        "the character that other parsers insert is accepted"
    );
}

#[test]
fn numbers_beyond_every_type() {
    let digits = "9".repeat(400);
    for (numeral, refused_when) in [
        ("1e999", "parsed"),
        ("-1e309", "parsed"),
        (&*digits, "parsed"),
        ("1e99999999999999999999", "parsed"),
        ("1e308", "selected"),
        ("18446744073709551616", "selected"),
        ("1e-99999999999999999999", "parsed"),
    ] {
        let beside = format!("{{\"id\":\"a\",\"n\":{numeral}}}");
        match refused_when {
            "parsed" => assert!(Document::parse(&beside).is_err(), "{numeral}"),
            _ => {
                assert_eq!(selected("n", &beside), Err(SelectionError::InexactNumber), "{numeral}");
                assert_eq!(selected("id", &beside).unwrap(), "\"a\"", "{numeral}");
            }
        }
    }
    let many_digits = format!("0.{}", "1".repeat(MIB));
    assert_eq!(selected("@", &many_digits), Err(SelectionError::InexactNumber));
}

#[test]
fn deep_nesting() {
    for (depth, is_read) in [(127, true), (128, false), (200_000, false)] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            assert_eq!(Document::parse(&deep).is_ok(), is_read, "{depth}");
            let body = serde_json::to_string(&deep).unwrap();
            let record = format!("{{\"body\":{body},\"id\":1}}");
            assert_eq!(selected("json(body)", &record).is_ok(), is_read, "{depth}");
            assert_eq!(selected("id", &record).unwrap(), "1");
            // In fields that are not read, depth needs no stack.
            let id = Expression::compile("id").unwrap();
            let beside = format!("{{\"deep\":{deep},\"id\":1}}");
            let document = Document::read(&beside, &FieldSet::of([&id])).unwrap();
            assert_eq!(id.select(&document).unwrap().canonical_bytes(), b"1");
        }
    }
}

#[test]
fn megabytes() {
    let letters = "x".repeat(6 * MIB);
    let record = format!("{{\"id\":\"a\",\"body\":\"{letters}\"}}");
    assert_eq!(selected("id", &record).unwrap(), "\"a\"");
    assert_eq!(selected("body", &record).unwrap().len(), 6 * MIB + 2);
    let numbers = format!("[1{}]", ",1.5".repeat(MIB / 4));
    assert_eq!(selected("[-1]", &numbers).unwrap(), "1.5e0");
    let names: Vec<_> = (0..50_000).map(|n| format!("\"member {n}\":{n}")).collect();
    assert_eq!(selected("\"member 49999\"", &format!("{{{}}}", names.join(","))).unwrap(), "49999");
}

#[test]
fn beyond_eight_mebibytes() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let Err(error) = Document::parse(&text(8 * MIB + 1)) else { panic!("it was accepted") };
    assert_eq!(error, DocumentError::TooLong { bytes: 8 * MIB + 1 });
    assert!(error.to_string().contains("8388608"), "{error}");
    assert_eq!(selected("@", &text(8 * MIB)).unwrap().len(), 8 * MIB);
    // An expression can list one value many times, so the selected value is limited too.
    let doubled = format!("@{}", " | [@, @]".repeat(30));
    assert_eq!(selected(&doubled, "\"text\""), Err(SelectionError::TooLong));
    let expression = Expression::compile(&doubled).unwrap();
    let text = Document::parse("\"text\"").unwrap();
    assert_eq!(expression.evaluate(&text), Err(SelectionError::TooLong));
}

/// The parsers of `serde_json` differ on the few largest doubles, so these are refused.
#[test]
fn the_largest_doubles() {
    for numeral in ["1.7976931348623157e308", "-17976931348623157e292", "1797.6931348623157e305"] {
        let beside = format!("{{\"id\":\"a\",\"n\":{numeral}}}");
        let error = Document::parse(&beside).unwrap_err();
        assert!(error.to_string().contains("larger than any double"), "{numeral}: {error}");
        let id = Expression::compile("id").unwrap();
        let document = Document::read(&beside, &FieldSet::of([&id])).unwrap();
        assert_eq!(id.select(&document).unwrap().canonical_bytes(), b"\"a\"", "{numeral}");
    }
    let beside = "{\"id\":\"a\",\"n\":1.7969e308}";
    assert_eq!(selected("id", beside).unwrap(), "\"a\"");
    assert_eq!(selected("n", beside), Err(SelectionError::InexactNumber));
}

/// A list of compressed texts, each below the limit, must not fill the memory.
#[test]
fn decompressed_texts_of_one_evaluation_share_one_limit() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b'a'; 5 * MIB]).unwrap();
    let packed = BASE64_STANDARD.encode(encoder.finish().unwrap());
    let list = |times: usize| {
        let items = vec![format!("\"{packed}\""); times];
        format!("[{}]", items.join(","))
    };
    let expression = "[*].base64_gzip(@)";
    // The limit is for each evaluation.
    for _ in 0..2 {
        assert_eq!(selected(expression, &list(1)).unwrap().len(), 5 * MIB + 4);
        let refused = selected(expression, &list(2)).unwrap_err();
        assert!(refused.to_string().contains("larger than 8 MiB together"), "{refused}");
    }
}
