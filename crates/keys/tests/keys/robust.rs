//! No expression and no document makes the library panic.

use lambda_idempotency_keys::{Document, Expression, SelectionError};
use proptest::prelude::*;

use crate::{json::json, support::cases};

const RECORD: &str =
    r#"{"a":{"b":[1,2.5,"x",null,{"c":"{\"d\":1}"}]},"t":"12","n":-0,"u":[[],{}]}"#;

/// Text made from tokens of expressions: most of it is nearly valid.
fn expression() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "a",
        "b",
        "t",
        "u",
        ".",
        ".",
        "[",
        "]",
        "[]",
        "[*]",
        "[?",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "@",
        "*",
        "|",
        "||",
        "&&",
        "!",
        "&",
        "==",
        "!=",
        "<",
        ">=",
        "`1`",
        "`null`",
        "`[1,2]`",
        "'x'",
        "\"a b\"",
        "0",
        "1",
        "-1",
        "2147483647",
        "-2147483648",
        " ",
        "length(",
        "sort_by(",
        "map(&",
        "json(",
        "to_number(",
        "to_string(",
        "max_by(",
        "slice",
        "::",
        "`\"",
        "\\",
        "é",
        "keys(",
        "merge(",
        "not_null(",
        "reverse(",
        "join(",
        "contains(",
        "sum(",
        "avg(",
    ]);
    prop::collection::vec(token, 0..16).prop_map(|tokens| tokens.concat())
}

fn try_out(text: &str, documents: &[&str]) {
    let expression = match Expression::compile(text) {
        Ok(expression) => expression,
        Err(error) => {
            assert!(!error.to_string().is_empty() && !error.reason().is_empty());
            return;
        }
    };
    for json in documents {
        if let Ok(document) = Document::parse(json) {
            match expression.select(&document) {
                Ok(selection) => assert!(!selection.canonical_bytes().is_empty()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn text_that_is_nearly_an_expression(text in expression(), value in json()) {
        try_out(&text, &[RECORD, &value.written(0)]);
    }

    #[test]
    fn functions_given_anything(
        name in prop::sample::select(vec![
            "abs", "ceil", "floor", "keys", "length", "max", "min", "reverse", "sort",
            "to_array", "to_number", "to_string", "type", "values", "json", "not_null", "merge",
        ]),
        value in json(),
    ) {
        let json = value.written(0);
        try_out(&format!("{name}(@)"), &[&json]);
        try_out(&format!("[].{name}(@)"), &[&json]);
        try_out(&format!("sort_by(@, &{name}(@))"), &[&json]);
    }

    #[test]
    fn slices_of_any_size(
        start in any::<Option<i32>>(), stop in any::<Option<i32>>(), step in any::<i32>(),
    ) {
        let shown = |number: Option<i32>| number.map(|n| n.to_string()).unwrap_or_default();
        let text = format!("[{}:{}:{step}]", shown(start), shown(stop));
        try_out(&text, &["[1,2,3,4,5]", "[]"]);
        try_out(&format!("[{step}]"), &["[1,2,3,4,5]"]);
    }
}

/// On a thread with little stack, as Tokio's workers have.
fn compile_and_select(text: String) -> Result<(), String> {
    let work = move || {
        let expression = Expression::compile(&text).map_err(|e| e.to_string())?;
        let _: (bool, Option<_>) = (expression.is_constant(), expression.few_values());
        let _: bool = expression.selects("a");
        let list = "[".repeat(120) + "1" + &"]".repeat(120);
        for json in [r#"{"a":{"a":[1]}}"#, &list] {
            let _: Result<_, SelectionError> =
                expression.clone().select(&Document::parse(json).unwrap());
        }
        Ok(())
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap()
}

#[test]
fn no_expression_exhausts_the_stack() {
    let shapes = [
        ("!", "a", ""),
        ("(", "a", ")"),
        ("[", "a", "]"),
        ("{a:", "a", "}"),
        ("&", "a", ""),
        ("a.", "a", ""),
        ("", "a", "[]"),
        ("", "a", "[*]"),
        ("", "@", "[0]"),
        ("", "@", "[::1]"),
        ("a||", "a", ""),
        ("a&&", "a", ""),
        ("a|", "a", ""),
        ("a==", "a", ""),
        ("[?", "a", "]"),
        ("a[?a==", "a", "]"),
        ("length(", "a", ")"),
        ("not_null(!", "a", ")"),
        ("*.", "a", ""),
        ("json(a.[", "a", "])"),
    ];
    for (before, middle, after) in shapes {
        for levels in [30, 50, 100, 1000] {
            let text = before.repeat(levels) + middle + &after.repeat(levels);
            let compiled = compile_and_select(text);
            assert!(levels < 1000 || compiled.is_err(), "{before}{middle}{after}");
        }
    }
}

#[test]
fn messages_about_long_expressions_are_short() {
    let long = "a".repeat(100_000) + ".";
    let error = Expression::compile(&long).unwrap_err();
    assert!(error.to_string().len() < 10_000, "{}", error.to_string().len());
    let late = format!("{}.", "a".repeat(4_000));
    assert!(Expression::compile(&late).unwrap_err().to_string().ends_with('^'));
}
