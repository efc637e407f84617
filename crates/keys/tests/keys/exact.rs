//! Numbers in expressions are exact: distinct numbers are never equal.

use lambda_idempotency_keys::{Document, Expression, FieldSet, SelectionError};

use crate::support::{cases, selected};
use proptest::prelude::*;

/// Neighbours from 2^51 on, which share an epsilon; and from 2^53 on, which share a double.
#[test]
fn neighbouring_integers_are_different() {
    for power in [51, 52, 53, 60, 63] {
        let (one, other) = (1_u64 << power, (1_u64 << power) + 1);
        let json = format!(
            r#"{{"l":[{{"id":{one},"order":"a"}},{{"id":{other},"order":"b"}}],"n":[{other},{one}]}}"#
        );
        for (expression, expected) in [
            (format!("l[?id == `{other}`].order"), r#"["b"]"#.to_owned()),
            (format!("l[?id != `{other}`].order"), r#"["a"]"#.to_owned()),
            (format!("l[?id > `{one}`].order"), r#"["b"]"#.to_owned()),
            (format!("l[?id <= `{one}`].order"), r#"["a"]"#.to_owned()),
            (format!("l[?id == `{other}.0`].order"), r#"["b"]"#.to_owned()),
            (format!("contains(n[1:], `{other}`)"), "false".to_owned()),
            ("max(n)".to_owned(), other.to_string()),
            ("min(n)".to_owned(), one.to_string()),
            ("sort(n)".to_owned(), format!("[{one},{other}]")),
            ("sort_by(l, &id)[-1].order".to_owned(), r#""b""#.to_owned()),
            ("max_by(l, &id).order".to_owned(), r#""b""#.to_owned()),
            ("min_by(reverse(l), &id).order".to_owned(), r#""a""#.to_owned()),
            ("l[0] == {id: l[1].id, order: 'a'}".to_owned(), "false".to_owned()),
        ] {
            // A literal that no double represents exactly is refused at start.
            if power > 52 && expression.contains(".0") {
                continue;
            }
            assert_eq!(selected(&expression, &json).as_deref(), Ok(&*expected), "{expression}");
        }
    }
}

#[test]
fn numbers_that_no_double_represents_are_compared_too() {
    let json =
        r#"{"tiny":1e-400,"near":0.1000000000000000055,"large":9007199254740993.5,"id":"a"}"#;
    for (expression, expected) in [
        ("tiny > `0` && id", r#""a""#),
        ("tiny == `0`", "false"),
        ("near == `0.1`", "false"),
        ("near > `0.1`", "true"),
        ("large > `9007199254740993`", "true"),
        ("large < `9007199254740994`", "true"),
        ("near == near", "true"),
        ("contains([near], `0.1`)", "false"),
        ("sort([near, `0.1`, tiny])[1]", "1e-1"),
        ("[tiny] == [`0`]", "false"),
        ("near || id", "refused"),
        ("abs(tiny)", "refused"),
        ("max([tiny, near])", "refused"),
        ("to_string(tiny)", "refused"),
        ("[id, tiny]", "refused"),
    ] {
        match expected {
            "refused" => {
                let refused = Err(SelectionError::InexactNumber);
                assert_eq!(selected(expression, json), refused, "{expression}");
            }
            expected => {
                assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression}")
            }
        }
    }
}

#[test]
fn equal_numbers_are_equal_however_they_are_written() {
    for equal in ["`1` == `1.0`", "`100` == `1e2`", "`0` == `-0`", "`0.5` == `5e-1`"] {
        assert_eq!(selected(equal, "0").unwrap(), "true", "{equal}");
    }
    // Their keys differ, because producers in other languages distinguish them.
    assert_ne!(selected("@", "1"), selected("@", "1.0"));
}

#[test]
fn rounding_is_exact_or_refused() {
    for (expression, json, expected) in [
        ("abs(@)", "-5", "5e0"),
        ("[ceil(@), floor(@)]", "-0.5", "[-0e0,-1e0]"),
        ("[ceil(@), floor(@)]", "99.000000000000000001", "[1e2,9.9e1]"),
        ("floor(@)", "1.7", "1e0"),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression} of {json}");
    }
    let refused = Err(SelectionError::InexactNumber);
    assert_eq!(selected("abs(@)", "9007199254740993"), refused);
}

/// A regression test: all such exponents were read as the same.
#[test]
fn numbers_with_an_exponent_beyond_64_bits_are_refused_where_they_are_read() {
    let (one, other) = ("1e-99999999999999999999", "1e-88888888888888888888");
    let read = |json: &str, expression: &str| {
        let reads = FieldSet::of([&Expression::compile(expression).unwrap()]);
        Document::read(json, &reads).map(drop).map_err(|error| error.to_string())
    };
    let json = format!(r#"{{"l":[{one},{other}],"id":7}}"#);
    let error = read(&json, "l[0] == l[1]").unwrap_err();
    assert!(error.contains("exponent"), "{error}");
    assert_eq!(read(&json, "id"), Ok(()));
    assert_eq!(
        selected("[0] == [1]", "[1e-999999999999999999,1e-999999999999999998]").unwrap(),
        "false"
    );
}

/// The projection ends at a hash: the next part is applied to the list, as in the reference.
#[test]
fn a_step_after_a_hash_in_a_projection_is_not_projected() {
    let json = r#"{"a":[{"b":1},{"b":2}]}"#;
    assert_eq!(selected("a[*].{x: b}", json).unwrap(), r#"[{"x":1},{"x":2}]"#);
    for nothing in ["a[*].{x: b}.x", "a[*].[b].x", "a[].{x: b}.x", "a[?b].{x: b}.x", "(a[*].c).x"] {
        let error = Expression::compile(nothing).unwrap_err();
        assert_eq!(nothing.get(error.offset()..), Some(".x"), "{error}");
        assert!(error.reason().contains("write `| [*].x`"), "{error}");
    }
    assert!(Expression::compile("a[*].c.x").is_ok());
    assert!(Expression::compile("*.c.x").is_ok());
    assert_eq!(selected("a[*].{x: b} | [*].x", json).unwrap(), "[1,2]");
}

proptest! {
    #![proptest_config(cases(512))]

    /// Comparisons have the same results as those of integers, which are exact.
    #[test]
    fn order_and_equality_are_those_of_the_integers(
        one in crate::json::integer(), other in crate::json::integer(), places in 0_u32..4,
    ) {
        // The same numbers, with some digits after the point.
        let written = |n: i128| {
            let (sign, digits) = (if n < 0 { "-" } else { "" }, n.unsigned_abs());
            let unit = 10_u128.pow(places);
            if places == 0 { n.to_string() } else {
                format!("{sign}{}.{:0>width$}", digits / unit, digits % unit, width = places as usize)
            }
        };
        let json = format!("[{},{}]", written(one), written(other));
        for (comparator, expected) in [
            ("==", one == other), ("!=", one != other), ("<", one < other),
            ("<=", one <= other), (">", one > other), (">=", one >= other),
        ] {
            let found = selected(&format!("[0] {comparator} [1]"), &json).unwrap();
            prop_assert_eq!(found, expected.to_string(), "{} {}", comparator, json);
        }
    }
}
