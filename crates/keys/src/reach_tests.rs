use crate::Expression;

#[test]
fn expressions_with_few_results_are_recognised() {
    for few in [
        "length(items)",
        "order.length(items)",
        "type(id)",
        "amount > `100`",
        "!paid",
        "contains(tags, 'a')",
        "starts_with(id, 'a')",
        "id && 'yes'",
        "(a == b) || 'no'",
        "(a == b) | @",
        "to_string(length(items))",
        "[length(items), type(id)]",
        "{n: length(items), x: 'x'}",
        "paid && (a == b)",
        "[a == b][0]",
        "{x: a == b, y: id}.x",
        "(paid == `true`) || id",
        "length(items) || id",
        "not_null(length(items), id)",
        "order.[length(items), 'v1']",
        "order.{n: type(@), v: 'v1'}",
        "items[*].type(id)",
        "(paid && `[\"a\"]`)[*].[@]",
        "[paid && 'a', `[1]`[?@ > `0`]]",
    ] {
        assert!(Expression::compile(few).unwrap().few_values().is_some(), "{few}");
    }
    for many in [
        "id",
        "@",
        "[id, length(items)]",
        "{id: id, large: amount > `100`}",
        "items[?paid == `true`].id",
        "(a == b) && id",
        "id || (a == b)",
        "not_null(id, length(items))",
        "[id, a == b][0]",
        "to_string(id)",
        "'constant'",
    ] {
        assert_eq!(Expression::compile(many).unwrap().few_values(), None, "{many}");
    }
}

#[test]
fn constant_expressions_are_recognised() {
    for constant in [
        "'x'",
        "id | 'x'",
        "'x' || id",
        "not_null('x', id)",
        "{a: 'x', b: id}.a",
        "[id, 'x'][1]",
        "['x', 'y']",
        "[['x', id][0], `1`]",
        "'x' && 'y'",
        "not_null(`null`, 'x', id)",
        "order.['x']",
        "order.{v: 'x'}",
        "order.{v: 'x'}.v",
        "order.['x', `{\"a\":\"y\"}`] | [1].a",
        "order.[['x']]",
        "[order.['x'], 'y']",
    ] {
        assert!(Expression::compile(constant).unwrap().is_constant(), "{constant}");
    }
    for other in [
        "id",
        "id || 'x'",
        "'' || id",
        "[id, 'x']",
        "not_null(id, 'x')",
        "{a: 'x', b: id}.b",
        "a.{k: 'x'}.k || id",
        "merge({a: 'x'}, @).a",
        "order.['x'] || id",
        "(order.['x'])[0] || id",
        "(order.[a].['x'])[0] || id",
        "not_null(order.['x'][0], id)",
        "[order.['x'], id]",
        "order.['x', id]",
    ] {
        assert!(!Expression::compile(other).unwrap().is_constant(), "{other}");
    }
}

/// Each of these expressions makes millions of values.
#[test]
fn expressions_that_multiply_values_are_given_up_after_a_limit() {
    for (first, by) in [("@", " | [@,@]"), ("`1`", " | [@,@]"), ("[@]", " | [@,@,@][]")] {
        let expression = format!("{first}{}", by.repeat(30));
        let expression = Expression::compile(&expression).unwrap();
        assert!(!expression.selects("a"));
        assert_eq!(expression.few_values().is_some(), first == "`1`");
    }
}

/// The first makes 125 million values, the second needs 10^7 steps for one value, and the third
/// evaluates a constant as often.
#[test]
fn nested_maps_are_given_up_after_a_limit() {
    let list = |item: &str| format!("[{}]", vec![item; 400].join(","));
    let (many, few) = (list("@"), format!("[{}]", ["@"; 150].join(",")));
    let nested = |depth: usize| "map(&".repeat(depth) + "@" + &format!(", {few})").repeat(depth);
    for text in [
        format!(
            "{many} | map(&[@,@,@,@,@,@,@,@,@,@], @) | map(&map(&[@,@,@,@,@,@,@,@,@,@], @), @)"
        ),
        format!("{few} | map(&map(&map(&map(&{few}, @), {few}), {few}), @)"),
        nested(8),
        format!("{} | map(&map(&map(&map(&@, {few}), {few}), {few}), @)", list("`1`")),
    ] {
        let expression = Expression::compile(&text).unwrap();
        let is_of_literals = text.contains('`');
        assert!(!expression.selects("a"), "{text}");
        assert_eq!(expression.is_constant(), is_of_literals, "{text}");
        assert_eq!(expression.few_values().is_some(), is_of_literals, "{text}");
    }
}

/// A regression test: each level followed its parts twice.
#[test]
fn lists_in_lists_are_followed_once() {
    let nested = |part: &str| "[".repeat(80) + part + &"]".repeat(80);
    let few = |text: &str| Expression::compile(text).unwrap().few_values();
    assert_eq!(few(&nested("type(a)")), Some("`type`"));
    assert_eq!(few(&nested("a")), None);
}

#[test]
fn expressions_that_always_select_a_member_are_recognised() {
    let selects = |text, member| Expression::compile(text).unwrap().selects(member);
    for text in [
        "@",
        "a",
        "a.b",
        "a.b.c",
        "a | b",
        "[id, a.b]",
        "{x: a}",
        "@.a",
        "to_string(@)",
        "values(a)",
        "a.*",
        "*",
        "id && a.b",
        "join('-', [id, a.b])",
        "[a.b][0]",
        "[id, a.b][-1]",
        "[id, a.b] | @[1]",
        "{x: a, y: id}.x.b",
        "not_null(a.b)",
        "merge(@, {x: 'y'})",
        "merge({a: id}, {a: a.b})",
        "sort([id, a.b])",
        "map(&@, [id, a.b])",
        "[a.b][]",
        "[{x: a.b}][*].x",
    ] {
        assert!(selects(text, "a.b"), "{text}");
    }
    for text in [
        "id",
        "b",
        "a.c",
        "[id, a.c]",
        "id || a.b",
        "a.b == 'x'",
        "b.a",
        "x.a.b",
        "a.*.c",
        "[id, a.b][0]",
        "{x: a.b, y: id}.y",
        "merge(@, {a: id})",
        "merge({a: a.b}, {a: id})",
        "not_null(id, a.b)",
    ] {
        assert!(!selects(text, "a.b"), "{text}");
    }
    let looks_at = |text| Expression::compile(text).unwrap().looks_at("a.b");
    assert!(looks_at("id || a.b") && looks_at("a.b == 'x' && id") && looks_at("a"));
    assert!(!looks_at("a.c") && !looks_at("id"));
}
