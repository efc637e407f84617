//! Mistakes in expressions are found when a function starts and shown with their position.
//! Functions that can make distinct values equal cause warnings.

use lambda_idempotency_keys::{Expression, Functions};

/// Every kind of mistake, with its message.
#[test]
fn each_mistake_is_shown_with_its_position() {
    for (text, offset, reason) in [
        ("", 0, "it is empty; write `@` for the whole payload"),
        ("a.", 2, "expected identifier, '*', '{', or '[', but it ends"),
        ("a..b", 2, "expected identifier, '*', '{', or '['"),
        ("a b", 2, "unexpected text after a complete expression"),
        ("[a b]", 3, "expected ']' or ','"),
        ("a)", 1, "unexpected text after a complete expression"),
        ("[a", 2, "expected ']' or ',', but it ends"),
        ("a || && b", 5, "expected a value here"),
        ("[a,]", 3, "expected a value here"),
        ("{a}", 2, "expected ':' to follow key"),
        ("{a: b", 5, "expected '}' or ',', but it ends"),
        ("{1: a}", 1, "expected the name of a part"),
        ("{a: b, a: c}", 0, "two parts are named `a`; one would be lost"),
        ("a[b]", 2, "expected number, ':', or '*'"),
        ("a[1", 3, "expected ':', or ']', but it ends"),
        ("a[*", 3, "expected ']' for wildcard index, but it ends"),
        ("a[?b", 4, "expected ']', but it ends"),
        ("a[1:2:3:4]", 7, "a slice has two colons at most"),
        ("a[::0]", 5, "the step of a slice cannot be 0"),
        ("a[99999999999]", 2, "expected a number of at most 32 bits"),
        ("'a", 0, "this ' is not closed"),
        (r#""a"#, 0, r#"this " is not closed"#),
        ("`a", 0, "this ` is not closed"),
        ("a = b", 2, "`=` is not an operator; write `==` to compare"),
        (
            "order-id",
            5,
            "`-` must be followed by digits; write a name that contains it in double quotes",
        ),
        ("größe.id", 2, "invalid character: ö; write a name that contains it in double quotes"),
        (
            r#""größe".nope(b)"#,
            12,
            "there is no function `nope`; add your own with `.key_functions(..)`",
        ),
        (
            "[id, sum(items)]",
            8,
            "`sum` is not available, because many distinct lists have one sum; \
             select the numbers themselves, as in `items[*].price`",
        ),
        (
            "sort_by(@, &avg(n))",
            15,
            "`avg` is not available, because many distinct lists have one avg; \
             select the numbers themselves, as in `items[*].price`",
        ),
        ("[a, length(b, c)]", 10, "`length` takes 1 argument(s), not 2"),
        ("not_null()", 8, "`not_null` takes at least 1 argument(s), not 0"),
        (r#""length"(a)"#, 8, "write a function's name without quotes"),
        ("length(a", 8, "expected ')' or ',', but it ends"),
        ("sort_by(a, b)", 7, "`sort_by` takes an expression reference (`&name`) as argument 2"),
        (
            "[&a]",
            1,
            "an expression reference (`&name`) is not a value; only `map`, `sort_by`, `max_by` and `min_by` take one",
        ),
        ("a == `0.1000000000000000055`", 5, "it holds a number that a double cannot hold exactly"),
        (
            r#"`{"a":1,"a":2}`"#,
            0,
            "ambiguous: an object has two members of the same name, before line 1, column 13; JSON parsers differ in which one they use",
        ),
    ] {
        let error = Expression::compile(text).unwrap_err();
        let caret = format!("{}^", " ".repeat(offset));
        let shown = format!(
            "invalid JMESPath expression at offset {offset}: {reason}\n  {text}\n  {caret}"
        );
        assert_eq!(error.to_string(), shown);
        assert_eq!((error.offset(), error.reason()), (offset, reason));
    }
}

#[test]
fn literals_and_names_that_are_not_json() {
    for (text, reason) in [
        ("a == `{`", "not valid JSON: it ends too early at line 1, column 2"),
        (
            r#"a == "\ud800""#,
            "it is not a quoted name: not valid JSON: an invalid escape at line 1, column 9",
        ),
    ] {
        let error = Expression::compile(text).unwrap_err();
        assert_eq!((error.offset(), error.reason()), (5, reason));
    }
}

#[test]
fn expressions_beyond_every_limit() {
    let long = format!("[{}]", "a,".repeat(2048));
    let error = Expression::compile(&long).unwrap_err();
    assert_eq!((error.offset(), error.reason()), (0, "it is longer than 4096 bytes; shorten it"));
    let deep = format!("a{}", ".a".repeat(101));
    let error = Expression::compile(&deep).unwrap_err();
    assert_eq!(
        (error.offset(), error.reason()),
        (201, "it has more than 100 operators; simplify it")
    );
}

/// An expression of several lines is shown in one line, with the caret under the mistake.
#[test]
fn expressions_of_several_lines() {
    let error = Expression::compile("[\n  tenant,\n  order..id\n]").unwrap_err();
    let shown = "invalid JMESPath expression at offset 20: expected identifier, '*', '{', \
                 or '['\n  [   tenant,   order..id ]\n                      ^";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn functions_with_invalid_names_are_refused() {
    for (name, reason) in [
        ("length", "there is a standard function `length`; give yours another name"),
        (
            "a-b",
            "invalid function name \"a-b\": use letters, digits and `_`, and do not begin with a digit",
        ),
    ] {
        let functions = Functions::standard().with(name, 1, |_| Err("never called"));
        let error = Expression::compile_with("a", &functions).unwrap_err();
        assert_eq!((error.offset(), error.reason()), (0, reason));
    }
    let own = Functions::standard().with("own", 1, |_| Err("never called"));
    let error = Expression::compile_with("own(&a)", &own).unwrap_err();
    assert!(
        error.reason().starts_with("an expression reference (`&name`) is not a value"),
        "{error}"
    );
}

/// Every kind of warning, with its message.
#[test]
fn warnings_name_values_that_become_equal() {
    for (text, warnings) in [
        (
            "[a, to_string(b)]",
            vec![
                "`to_string` at offset 13 can make distinct values equal: \
                 42 and \"42\" become the same text; numbers can be used in a key without it",
            ],
        ),
        (
            "join('-', [a, b])",
            vec![
                "`join` at offset 4 can make distinct values equal: with '-', both \
                 [\"a-b\", \"c\"] and [\"a\", \"b-c\"] become \"a-b-c\"; \
                 use `[a, b]`, a key of two parts",
            ],
        ),
        (
            "[to_number(a), length(b)]",
            vec![
                "`to_number` at offset 10 can make distinct values equal: \
                 7 and \"7\" become the same number, and so do \"0.5\" and \"0.50\"",
                "`length` at offset 21 can make distinct values equal: \
                 many distinct values have the same result",
            ],
        ),
        (
            "[items[].id, prices.*]",
            vec![
                "`[]` at offset 6 can make distinct values equal: \
                 [[1], [2]] and [[1, 2]] become [1, 2]; `[*]` keeps nested lists distinct",
                "`*` at offset 20 can make distinct values equal: \
                 the names of the members are left out",
            ],
        ),
        ("[tenant, order.id, items[*].id]", vec![]),
    ] {
        let expression = Expression::compile(text).unwrap();
        let shown: Vec<_> = expression.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(shown, warnings, "{text}");
    }
}
