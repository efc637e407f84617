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
        ("sum([near, tiny])", "refused"),
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
fn sums_and_averages_are_exact_or_refused() {
    for (expression, json, expected) in [
        ("sum(@)", "[9007199254740993,-9007199254740992]", "1e0"),
        ("sum(@)", "[0.1,0.2]", "3e-1"),
        ("sum(@)", "[0.1,0.2,0.3]", "6e-1"),
        ("sum(@)", "[0.3,0.2,0.1]", "6e-1"),
        ("sum(@)", "[18446744073709551615,-18446744073709551614]", "1e0"),
        ("sum(@)", "[]", "0e0"),
        ("sum(@)", "[1e300,1,-1e300]", "1e0"),
        ("avg(@)", "[9007199254740993,-9007199254740990]", "1.5e0"),
        ("avg(@)", "[0.1,0.2]", "1.5e-1"),
        ("avg(@) || 'none'", "[]", r#""none""#),
        ("avg(@) > `0.333` && avg(@) < `0.334` && 'a third'", "[1,0,0]", r#""a third""#),
        ("avg(@) == avg([`2`, `0`, `0`, `0`, `0`, `0`])", "[1,0,0]", "true"),
        ("avg(@) == `0.3333333333333333`", "[1,0,0]", "false"),
        ("ceil(avg(@))", "[1,0,0]", "1e0"),
        ("abs(@)", "-5", "5e0"),
        ("[ceil(@), floor(@)]", "-0.5", "[-0e0,-1e0]"),
        ("floor(@)", "1.7", "1e0"),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression} of {json}");
    }
    for (expression, json) in [
        ("sum(@)", "[9007199254740993,0.5]"),
        ("sum(@)", "[18446744073709551615,1]"),
        ("avg(@)", "[1,0,0]"),
        ("abs(@)", "9007199254740993"),
    ] {
        let refused = Err(SelectionError::InexactNumber);
        assert_eq!(selected(expression, json), refused, "{expression} of {json}");
    }
    let far = selected("sum(@)", "[1,1e-999999999]").unwrap_err().to_string();
    assert!(far.contains("too far apart"), "{far}");
    let lists: Vec<_> = [3, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59]
        .map(|length: usize| format!("[1{}]", ",0".repeat(length - 1)))
        .into();
    let fine = selected("sum([*].avg(@))", &format!("[{}]", lists.join(","))).unwrap_err();
    assert!(fine.to_string().contains("averages"), "{fine}");
}

/// Averages that are infinite decimals are fractions: equal averages are equal, whatever numbers
/// they are of.
#[test]
fn averages_that_are_infinite_decimals_are_exact() {
    let json = r#"{"a":[2,2,1],"b":[2,2,1,2,2,1],"t":[1,0,0],"u":[2,0,0],
        "l":[{"id":"a","p":[2,2,1]},{"id":"b","p":[2,2,1,2,2,1]}],
        "x":0.33333333333333333333333333333333333333331}"#;
    for (expression, expected) in [
        ("avg(a) == avg(b)", "true"),
        ("avg(b) > avg(a)", "false"),
        ("sort_by(l, &avg(p))[0].id", r#""a""#),
        ("min_by(l, &avg(p)).id", r#""a""#),
        ("max_by(l, &avg(p)).id", r#""a""#),
        ("sum([avg(t), avg(u)]) == `1`", "true"),
        ("sum([avg(t), avg(u)])", "1e0"),
        ("floor(sum([avg(t), avg(u)]))", "1e0"),
        ("floor(avg(a))", "1e0"),
        ("ceil(avg(a))", "2e0"),
        ("avg([avg(t), avg(u)]) >= `0.5`", "true"),
        ("avg([avg(t), avg(u)])", "5e-1"),
        ("avg(t) == x", "false"),
        ("avg(t) > x", "true"),
        ("abs(avg(t)) == avg(t)", "true"),
        ("contains([avg(a)], avg(b))", "true"),
    ] {
        assert_eq!(selected(expression, json).as_deref(), Ok(expected), "{expression}");
    }
    for refused in ["avg(t)", "to_string(avg(t))", "{x: avg(a)}"] {
        assert_eq!(selected(refused, json), Err(SelectionError::InexactNumber), "{refused}");
    }
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
        let total = format!("[{json},{}]", one + other);
        let sums = if places == 0 { "sum([0]) == [1]" } else { "sum([0]) == sum(reverse([0]))" };
        prop_assert_eq!(selected(sums, &total).unwrap(), "true", "{}", total);
    }
}
