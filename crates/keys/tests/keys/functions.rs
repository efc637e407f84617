//! Functions beside the standard ones: those that decode text, and user-defined ones.

use base64::{Engine, prelude::BASE64_STANDARD};
use lambda_idempotency_keys::{Document, Expression, Functions, SelectionError};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{
    json::json,
    support::{cases, selected},
};

fn functions() -> Functions {
    Functions::standard()
        .with("pair", 2, |arguments| Ok(Value::Array(arguments.to_vec())))
        .with("half", 1, |arguments| match arguments {
            [number] => number.as_f64().map(|n| json!(n / 2.0)).ok_or("it is not a number"),
            _ => Err("one argument is needed"),
        })
        .with("answer", 0, |_| Ok(json!(42)))
        .with("nothing", 1, |_| Ok(Value::Null))
        .with("breaks", 1, |arguments| Ok(arguments[1].clone()))
        .with("nested", 1, |arguments| {
            let inner = Expression::compile("json(@)").unwrap();
            let text = arguments.first().and_then(Value::as_str).ok_or("it is not a string")?;
            inner.evaluate(&Document::string(text)).map_err(|_| "it is not JSON")
        })
}

fn with_functions(expression: &str, json: &str) -> Result<String, SelectionError> {
    let expression = Expression::compile_with(expression, &functions()).unwrap();
    let selection = expression.select(&Document::parse(json).unwrap())?;
    Ok(String::from_utf8(selection.canonical_bytes().to_vec()).unwrap())
}

#[test]
fn user_defined_functions_take_and_return_values() {
    let json = r#"{"a":"x","b":{"c":[1,2.5,null]},"n":3,"big":18446744073709551615}"#;
    for (expression, expected) in [
        ("pair(a, b)", r#"["x",{"c":[1,2.5e0,null]}]"#),
        ("pair(big, n)", "[18446744073709551615,3]"),
        ("[pair(a, n)[0], half(n)]", r#"["x",1.5e0]"#),
        ("map(&half(@), [n, n])", "[1.5e0,1.5e0]"),
        ("[a, answer()]", r#"["x",42]"#),
        ("nested('{\"x\":1}') && a", r#""x""#),
    ] {
        assert_eq!(with_functions(expression, json).as_deref(), Ok(expected), "{expression}");
    }
    assert!(Expression::compile_with("answer()", &functions()).unwrap().is_constant());
    assert_eq!(with_functions("nothing(a)", json), Err(SelectionError::Missing));
}

#[test]
fn errors_of_user_defined_functions_contain_no_values() {
    let json = r#"{"secret":"s3cr3t"}"#;
    for (expression, part) in [
        ("half(secret)", "half(): it is not a number"),
        ("breaks(secret)", "breaks(): it panicked"),
    ] {
        let error = with_functions(expression, json).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains("s3cr3t"), "{error}");
    }
}

/// Mistakes at any depth are found when the function starts.
#[test]
fn calls_are_checked_when_they_are_compiled() {
    for (expression, offset, part) in [
        ("pair(a)", 4, "`pair` takes 2 argument(s), not 1"),
        ("items[?pair(a, b, c)].id", 11, "`pair` takes 2 argument(s), not 3"),
        ("sort_by(items, &half(a, b))", 20, "`half` takes 1 argument(s), not 2"),
        ("{x: [a, length(to_string(a, b))]}", 24, "`to_string` takes 1"),
        ("not_null()", 8, "`not_null` takes at least 1"),
        ("half(missing(a))", 12, "no function `missing`"),
    ] {
        let error = Expression::compile_with(expression, &functions()).unwrap_err();
        assert_eq!(error.offset(), offset, "{error}");
        assert!(error.reason().contains(part), "{error}");
    }
    assert!(
        Expression::compile("pair(a, b)").is_err(),
        "user-defined functions are known only where they are added"
    );
    let reserved = Functions::standard().with("length", 1, |_| Ok(Value::Null));
    assert!(Expression::compile_with("a", &reserved).is_err());
}

#[test]
fn user_defined_functions_do_not_make_inexact_numbers_acceptable() {
    let json = r#"{"id":"a","n":0.1000000000000000055,"t":"[0.1000000000000000055]"}"#;
    for expression in ["half(n)", "pair(id, n)", "nested(t)", "pair(id, json(t))"] {
        let result = with_functions(expression, json);
        assert!(
            matches!(
                result,
                Err(SelectionError::InexactNumber | SelectionError::Evaluation { .. })
            ),
            "{expression}: {result:?}"
        );
    }
    for expression in ["pair(id, 'x')", "n && answer()", "json(t) && id"] {
        assert!(with_functions(expression, json).is_ok(), "{expression}");
    }
}

#[test]
fn powertools_names_are_the_same_functions() {
    // {"id":"7"} in base64, and compressed by gzip in base64.
    let json = r#"{"plain":"eyJpZCI6IjcifQ==",
        "packed":"H4sIAAAAAAACA6tWykxRslIyV6oFAEG0lfIKAAAA","text":"{\"id\":\"7\"}"}"#;
    for prefix in ["", "powertools_"] {
        for expression in [
            format!("{prefix}json(text).id"),
            format!("{prefix}json({prefix}base64(plain)).id"),
            format!("{prefix}base64_gzip(packed) | {prefix}json(@).id"),
        ] {
            assert_eq!(selected(&expression, json).as_deref(), Ok("\"7\""), "{expression}");
        }
    }
    for (expression, part) in [
        ("base64(text)", "base64(): the text is not base64"),
        (
            "powertools_base64_gzip(plain)",
            "powertools_base64_gzip(): the text is not the base64 of",
        ),
        ("base64(missing)", "base64() takes a string, and this is of type null"),
    ] {
        let error = selected(expression, json).unwrap_err().to_string();
        assert!(error.to_lowercase().contains(&part.to_lowercase()), "{error}");
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

    #[test]
    fn user_defined_functions_get_the_selected_values(value in json()) {
        let value = value.written(0);
        let json = format!("{{\"v\":{value},\"pair\":[{value},{value}]}}");
        prop_assert_eq!(with_functions("pair(v, v)", &json), selected("pair", &json));
    }
}
