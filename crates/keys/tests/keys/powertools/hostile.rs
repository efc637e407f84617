//! Payloads that try to cost far more time or memory than their size. In an unoptimised build each
//! takes a second or two; quadratic code would take hours, and exponential code would never end.

use std::io::Write as _;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, write::GzEncoder};
use lambda_idempotency_keys::powertools::{PowertoolsKeys, PowertoolsLanguage};
use lambda_idempotency_keys::{DocumentError, SelectionError};

use super::select;
use crate::bodies::{made, selector};

const MIB: usize = 1 << 20;

fn both() -> [PowertoolsKeys; 2] {
    [PowertoolsLanguage::Python, PowertoolsLanguage::TypeScript]
        .map(|language| PowertoolsKeys::of(language, "p").accept_collisions())
}

fn packed(plain: &[u8]) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    BASE64_STANDARD.encode(encoder.finish().unwrap())
}

/// TypeScript treats text that it cannot read as `undefined`. If text that is too large were treated
/// so, too, all such records would share a key.
#[test]
fn text_that_decompresses_beyond_the_limit_is_an_error_and_not_a_value() {
    let bomb = packed(&vec![b'a'; 8 * MIB + 1]);
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    let deep = serde_json::to_string(&deep).unwrap();
    for powertools in both() {
        for (function, text) in
            [("powertools_base64_gzip", format!("\"{bomb}\"")), ("powertools_json", deep.clone())]
        {
            let expression = format!("[id, {function}(data)]");
            let json = format!(r#"{{"id":1,"data":{text}}}"#);
            let refused = select(&powertools, &expression, &json).unwrap_err();
            assert!(matches!(refused, SelectionError::Evaluation { .. }), "{function}: {refused}");
            assert!(refused.to_string().contains(function), "{refused}");
        }
    }
}

#[test]
fn compressed_texts_of_one_evaluation_share_one_limit() {
    let half = packed(&vec![b'a'; 5 * MIB]);
    let list = |times: usize| {
        let items = vec![format!("\"{half}\""); times];
        format!(r#"{{"list":[{}]}}"#, items.join(","))
    };
    let expression = "list[*].powertools_base64_gzip(@)";
    for powertools in both() {
        assert_eq!(select(&powertools, expression, &list(1)).unwrap().len(), 5 * MIB + 4);
        let refused = select(&powertools, expression, &list(2)).unwrap_err();
        assert!(refused.to_string().contains("8 MiB"), "{refused}");
    }
}

/// TypeScript treats broken data as `undefined`, but decompresses it first.
#[test]
fn broken_compressed_texts_share_the_limit_too() {
    let mut broken = BASE64_STANDARD.decode(packed(&vec![b'a'; 5 * MIB])).unwrap();
    let checksum = broken.len() - 8;
    broken[checksum] ^= 1;
    let broken = BASE64_STANDARD.encode(broken);
    let typescript = PowertoolsKeys::of(PowertoolsLanguage::TypeScript, "p").accept_collisions();
    let expression = "[id, list[*].powertools_base64_gzip(@)]";
    let with = |times: usize| {
        let list = vec![format!("\"{broken}\""); times].join(",");
        select(&typescript, expression, &format!(r#"{{"id":1,"list":[{list}]}}"#))
    };
    assert!(with(1).is_ok());
    let refused = with(2).unwrap_err();
    assert!(refused.to_string().contains("8 MiB"), "{refused}");
}

/// Values that an expression multiplies take memory, even if they are not selected.
#[test]
fn an_expression_that_multiplies_items_is_limited() {
    let many = ["@"; 200].join(",");
    let [python, _] = both();
    let multiplied =
        format!("[{many}] | [*].[{many}] | [*][*].[{many}] | [*][*][*].[{many}] | [0]");
    let refused = select(&python, &multiplied, "1");
    assert_eq!(refused, Err(SelectionError::TooLong));
}

#[test]
fn documents_beyond_eight_mebibytes_are_refused() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    for powertools in both() {
        let whole = selector(&powertools, "@").unwrap();
        assert!(made(&whole, &text(8 * MIB)).is_ok());
        let refused = made(&whole, &text(8 * MIB + 1)).map(drop);
        assert_eq!(refused, Err(DocumentError::TooLong { bytes: 8 * MIB + 1 }));
    }
}

#[test]
fn an_expression_that_repeats_a_value_is_limited() {
    let doubled = format!("@{}", " | [@, @]".repeat(40));
    let [python, _] = both();
    let refused = select(&python, &doubled, "\"text\"");
    assert_eq!(refused, Err(SelectionError::TooLong));
}
