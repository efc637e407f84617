//! Records that have nothing in common share no key, whatever an expression makes of them and
//! whatever they lack.

use lambda_idempotency_keys::{Expression, producer::KeySpec};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::cases;

/// Fields: texts, an object, a list of texts and a list of objects.
const PATHS: [&str; 8] = ["a", "b", "o.x", "o", "l", "l[0]", "items", "items[0].x"];
/// Paths inside an item.
const INNER: [&str; 4] = ["x", "y", "@", "[x, y]"];
const LITERALS: [&str; 8] = [
    "'none'",
    "`0`",
    "`null`",
    "''",
    "`[]`",
    "`[\"n\"]`",
    "`{\"x\":\"none\",\"a\":\"none\"}`",
    "`true`",
];

fn condition(value: &BoxedStrategy<String>) -> BoxedStrategy<String> {
    let by = prop::sample::select(vec!["==", "!=", "<", ">="]);
    prop_oneof![
        (value.clone(), by, value.clone())
            .prop_map(|(one, by, other)| format!("({one} {by} {other})")),
        value.clone().prop_map(|one| format!("!{one}")),
        value.clone().prop_map(|one| format!("contains({one}, 'n')")),
    ]
    .boxed()
}

/// Expressions that combine fields with literals, or that pick items. One that puts a literal into
/// a list and picks it again, `(['none', id])[?@] | [0]`, selects a constant, and nobody writes it.
#[derive(Clone, Copy)]
enum Family {
    Literals,
    Picks,
}

fn expression(depth: u32, family: Family) -> BoxedStrategy<String> {
    let path = prop::sample::select(PATHS.to_vec()).prop_map(str::to_owned).boxed();
    let leaf = match family {
        Family::Literals => {
            let literal = prop::sample::select(LITERALS.to_vec()).prop_map(str::to_owned);
            prop_oneof![4 => path, 1 => literal].boxed()
        }
        Family::Picks => path,
    };
    if depth == 0 {
        return leaf;
    }
    let inside = expression(depth - 1, family);
    let both = (inside.clone(), inside.clone());
    let inner = prop::sample::select(INNER.to_vec());
    let condition = condition(&inside);
    let function = prop::sample::select(vec![
        "to_string",
        "to_array",
        "reverse",
        "sort",
        "values",
        "to_number",
        "keys",
        "length",
        "type",
        "not_null",
    ]);
    let combined = prop_oneof![
        2 => leaf,
        2 => both.clone().prop_map(|(one, other)| format!("({one} || {other})")),
        2 => both.clone().prop_map(|(one, other)| format!("({one} && {other})")),
        2 => (condition.clone(), inside.clone())
            .prop_map(|(when, then)| format!("({when} && {then})")),
        1 => condition,
        2 => both.clone().prop_map(|(one, other)| format!("[{one}, {other}]")),
        2 => both.clone().prop_map(|(one, other)| format!("{{a: {one}, x: {other}}}")),
        2 => both.clone().prop_map(|(one, other)| format!("not_null({one}, {other})")),
        1 => both.clone().prop_map(|(one, other)| format!("merge({one}, {other})")),
        1 => (inside.clone(), inner.clone())
            .prop_map(|(list, each)| format!("map(&{each}, {list})")),
        1 => (inside.clone(), inner.clone())
            .prop_map(|(list, each)| format!("({list})[*].[{each}]")),
        2 => (function, inside.clone()).prop_map(|(name, of)| format!("{name}({of})")),
    ];
    let step = prop::sample::select(vec!["[0]", "[-1]", "[1:]", ".x", "[?x]", "[?@ != 'n']"]);
    match family {
        Family::Literals => combined.boxed(),
        Family::Picks => prop_oneof![
            6 => combined,
            1 => both.prop_map(|(one, other)| format!("({one} | {other})")),
            1 => (inside.clone(), inner).prop_map(|(list, by)| format!("max_by({list}, &{by})")),
            2 => (inside, step).prop_map(|(of, step)| format!("({of}){step} | [0]")),
        ]
        .boxed(),
    }
}

/// A record whose every value occurs in no other record; each member may be missing.
fn record(mark: u32, has: &[bool]) -> Value {
    let mut record = json!({ "mark": mark });
    let members = [
        ("a", json!(format!("a{mark}"))),
        ("b", json!(format!("b{mark}"))),
        ("o", json!({ "x": format!("o{mark}") })),
        ("l", json!([format!("l{mark}"), format!("m{mark}")])),
        (
            "items",
            json!([{ "x": format!("i{mark}"), "y": format!("j{mark}") }, { "x": format!("k{mark}") }]),
        ),
    ];
    for ((name, value), _) in members.into_iter().zip(has).filter(|(_, has)| **has) {
        record[name] = value;
    }
    record
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn distinct_records_share_no_key_whatever_they_lack(
        text in prop_oneof![expression(3, Family::Literals), expression(3, Family::Picks)],
        one in prop::collection::vec(any::<bool>(), 5),
        other in prop::collection::vec(any::<bool>(), 5),
    ) {
        let Ok(expression) = Expression::compile(&text) else { return Ok(()) };
        // A warning says what the expression can make equal.
        if !expression.warnings().is_empty() {
            return Ok(());
        }
        let Ok(producer) = KeySpec::new("op", &*text).producer() else { return Ok(()) };
        let key = |record: Value| producer.key(&record.to_string()).ok();
        if let (Some(first), Some(second)) = (key(record(1, &one)), key(record(2, &other))) {
            prop_assert_ne!(first, second, "{} of {:?} and {:?}", text, one, other);
        }
    }
}
