//! Mistakes in expressions are found when a function starts, and shown with their position and the remedy.

use lambda_idempotency_keys::{
    Expression,
    powertools::{PowertoolsKeys, PowertoolsLanguage},
};

use crate::bodies::selector;

/// The message about a mistake in an expression of an operation with Powertools keys.
fn mistake(keys: &PowertoolsKeys, expression: &str) -> String {
    selector(keys, expression).unwrap_err().to_string()
}

/// Every form of JMESPath that key expressions do not have: an example, where the message points to, and what it says.
const LEFT_OUT: &[(&str, usize, &str)] = &[
    ("'id'", 0, "it is a constant, the same for every record"),
    ("[id, `1`]", 5, "it is a constant"),
    ("a == b", 2, "it is a comparison"),
    ("a != b", 2, "it is a comparison"),
    ("[a, b < c]", 6, "it is a comparison"),
    ("a >= b", 2, "it is a comparison"),
    ("a = b", 2, "it is a comparison"),
    ("a && b", 2, "`&&` and `!` are conditions"),
    ("!a", 0, "`&&` and `!` are conditions"),
    (
        "id || orderId",
        3,
        "`||` chooses by a condition (`not_null(a, b)` takes the first that there is)",
    ),
    ("items[?paid].id", 5, "`[?` is a filter"),
    ("items[].id", 5, "`[]` makes distinct lists equal"),
    ("[]", 0, "`[]` makes distinct lists equal"),
    ("items[1:]", 5, "it is a slice"),
    ("items[:2]", 5, "it is a slice"),
    ("[::2]", 0, "it is a slice"),
    ("prices.*", 7, "`*` leaves out the names of members"),
    ("*.id", 0, "`*` leaves out the names of members"),
    ("[id, *]", 5, "`*` leaves out the names of members"),
    ("(a).b", 0, "parentheses change what is projected"),
    ("a | (b)", 4, "parentheses change what is projected"),
    ("length(items)", 0, "`length` is not one of the functions"),
    ("[id, to_string(n)]", 5, "`to_string` is not one of the functions"),
    ("a.lower(b)", 2, "`lower` is not one of the functions"),
    ("map(&id, items)", 4, "`&` makes an argument of an expression"),
];

#[test]
fn what_the_language_leaves_out_is_refused_with_the_remedy() {
    let keys = |language| PowertoolsKeys::of(language, "p");
    for (text, offset, what) in LEFT_OUT {
        for error in [
            Expression::compile(text).unwrap_err().to_string(),
            mistake(&keys(PowertoolsLanguage::Python), text),
            mistake(&keys(PowertoolsLanguage::TypeScript), text),
        ] {
            assert!(error.contains(&format!("at offset {offset}: {what}")), "{error}");
            let remedy = "compute such a key with \
                          `.key_fn(|payload: &str| -> Result<Vec<String>, &'static str> { .. })`\n";
            assert!(error.contains(remedy), "{error}");
        }
    }
}

/// Every other kind of mistake, with its message.
#[test]
fn each_mistake_is_shown_with_its_position() {
    for (text, offset, reason) in [
        ("", 0, "it is empty; write `@` for the whole payload"),
        ("a.", 2, "expected identifier, '{', or '[', but it ends"),
        ("a..b", 2, "expected identifier, '{', or '['"),
        ("a b", 2, "unexpected text after a complete expression"),
        ("[a b]", 3, "expected ']' or ','"),
        ("a)", 1, "unexpected text after a complete expression"),
        ("[a", 2, "expected ']' or ',', but it ends"),
        ("a | | b", 4, "expected a value here"),
        ("[a,]", 3, "expected a value here"),
        ("{a}", 2, "expected ':' to follow key"),
        ("{a: b", 5, "expected '}' or ',', but it ends"),
        ("{a: b c: d}", 6, "expected '}' or ','"),
        ("{1: a}", 1, "expected the name of a part"),
        ("{a: b, a: c}", 0, "two parts are named `a`; one would be lost"),
        ("a[b]", 2, "expected number or '*'"),
        ("a[1", 3, "expected ']', but it ends"),
        ("a[*", 3, "expected ']' for wildcard index, but it ends"),
        ("a[*]b", 4, "unexpected text after a complete expression"),
        ("a[99999999999]", 2, "expected a number of at most 32 bits"),
        (r#""a"#, 0, r#"this " is not closed"#),
        (
            "order-id",
            5,
            "`-` must be followed by digits; write a name that contains it in double quotes",
        ),
        (
            "$.orderId",
            0,
            "invalid character: $; a JMESPath begins with a name, and its names are joined by dots: `order.id`",
        ),
        (
            "/orderId",
            0,
            "invalid character: /; a JMESPath begins with a name, and its names are joined by dots: `order.id`",
        ),
        ("größe.id", 2, "invalid character: ö; write a name that contains it in double quotes"),
        ("json()", 0, "`json` takes 1 argument, not 0"),
        ("json(a, b)", 0, "`json` takes 1 argument, not 2"),
        ("not_null()", 0, "`not_null` takes at least 1 argument"),
        ("json(a", 6, "expected ')' or ',', but it ends"),
        ("json(a,)", 7, "expected a value here"),
        ("powertools_json(a)", 0, "`powertools_json` is named `json` here"),
        (r#""json"(a)"#, 6, "write a function's name without quotes"),
        ("[a, b][2]", 6, "the list before it has 2 parts"),
        ("{a: b}.c", 6, "the object before it has no part `c`"),
        ("{a: b}[0]", 6, "the expression before it is an object, which has no items"),
        ("{a: b}[*]", 6, "the expression before it is an object, which has no items"),
        (
            "a[*].{x: b}.x",
            11,
            "the expression before it is a list, which has no member `x`; write `| [*].x`",
        ),
        (
            "a[*].b | c",
            7,
            "the expression before it is a list, which has no member `c`; write `| [*].c`",
        ),
        (
            r#""\ud800""#,
            0,
            "it is not a quoted name: not valid JSON: an invalid escape at line 1, column 9",
        ),
    ] {
        let error = Expression::compile(text).unwrap_err();
        assert_eq!((error.offset(), error.reason()), (offset, reason), "{text}");
        let caret = format!("{}^", " ".repeat(offset));
        let shown = format!(
            "invalid JMESPath expression at offset {offset}: {reason}\n  {text}\n  {caret}"
        );
        assert_eq!(error.to_string(), shown);
    }
    for right in ["[a, b][-2]", "{a: b}.a", "a[*].b.c", "a[*].[b] | [*][0]", "[a, b] | [1].c"] {
        assert!(Expression::compile(right).is_ok(), "{right}");
    }
}

/// Every JavaScript object has these members, whatever a record says.
#[test]
fn members_that_javascript_takes_for_its_own_are_refused_for_typescript() {
    let [python, typescript] = [PowertoolsLanguage::Python, PowertoolsLanguage::TypeScript]
        .map(|language| PowertoolsKeys::of(language, "p"));
    for (text, offset) in [("toString", 0), ("a.constructor", 2), ("__proto__", 0), (r#""""#, 0)] {
        let error = mistake(&typescript, text);
        assert!(error.contains("does not select the member"), "{error}");
        assert!(error.contains(&format!("at offset {offset}: ")), "{error}");
        assert!(selector(&python, text).is_ok() && Expression::compile(text).is_ok());
    }
    let error = mistake(&typescript, "{a: b, __proto__: c}");
    assert!(error.contains("leaves out a part named `__proto__`"), "{error}");
    let error = mistake(&python, "json(a)");
    assert!(error.contains(": `json` is named `powertools_json` here\n"), "{error}");
    let error = mistake(&typescript, "url_decode(a)");
    let functions =
        "`powertools_json`, `powertools_base64`, `powertools_base64_gzip` and `not_null`";
    assert!(
        error.contains(&format!("`url_decode` is not one of the functions {functions}, and")),
        "{error}"
    );
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
    assert!(Expression::compile(&format!("a{}", ".\".[(\"".repeat(100))).is_ok(), "quoted");
}

/// An expression of several lines is shown in one line, with the caret under the mistake.
#[test]
fn expressions_of_several_lines() {
    let error = Expression::compile("[\n  tenant,\n  order..id\n]").unwrap_err();
    let shown = "invalid JMESPath expression at offset 20: expected identifier, '{', or '['\n  \
                 [   tenant,   order..id ]\n                      ^";
    assert_eq!(error.to_string(), shown);
}

#[test]
fn messages_about_long_expressions_are_short() {
    let long = "a".repeat(100_000) + ".";
    let error = Expression::compile(&long).unwrap_err();
    assert!(error.to_string().len() < 10_000, "{}", error.to_string().len());
    let late = format!("{}.", "a".repeat(4_000));
    assert!(Expression::compile(&late).unwrap_err().to_string().ends_with('^'));
}
