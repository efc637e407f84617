//! What an expression selects whatever the data, as far as its syntax says: one of a few values, and
//! the value of a member.

use super::jmespath::ast::Node;

/// Why all that is selected is one of a few values: the function or operator that makes it so.
pub(super) fn few_values(node: &Node) -> Option<&'static str> {
    let together = |nodes: &[&Node]| {
        let all = nodes.iter().all(|node| few_values(node).is_some() || !node.reads_data());
        nodes.iter().find_map(|node| few_values(node)).filter(|_| all)
    };
    match node {
        Node::Compare { .. } => Some("a comparison"),
        Node::Not(_) => Some("`!`"),
        Node::Call { name: "length", .. } => Some("`length`"),
        Node::Call { name: "type", .. } => Some("`type`"),
        Node::Call { name: "contains", .. } => Some("`contains`"),
        Node::Call { name: "starts_with", .. } => Some("`starts_with`"),
        Node::Call { name: "ends_with", .. } => Some("`ends_with`"),
        // What is not true and a value is nothing, or `false`.
        Node::And(left, right) if !right.reads_data() && left.reads_data() => Some("`&&`"),
        Node::And(_, right) => few_values(right),
        Node::Then(first, last) if matches!(**last, Node::Current) => few_values(first),
        Node::Then(_, last) => few_values(last),
        Node::Or(..) | Node::List(_) | Node::Hash(_) | Node::Call { .. } => {
            together(&node.children())
        }
        _ => None,
    }
}

/// Whether what is selected surely holds the member with this path, or something in it.
pub(super) fn selects(node: &Node, member: &str) -> bool {
    let member: Vec<&str> = member.split('.').collect();
    selected(node, &[]).iter().any(|path| path.iter().zip(&member).all(|(one, other)| one == other))
}

/// The paths of fields whose values are part of what is selected, applied to what is at `at`.
fn selected<'n>(node: &'n Node, at: &[&'n str]) -> Vec<Vec<&'n str>> {
    match node {
        Node::Current | Node::Field { .. } => path(node, at).into_iter().collect(),
        Node::Then(first, last) => match path(first, at) {
            Some(at) => selected(last, &at),
            None if matches!(**last, Node::Current) => selected(first, at),
            None => Vec::new(),
        },
        Node::List(_) | Node::Hash(_) => {
            node.children().into_iter().flat_map(|part| selected(part, at)).collect()
        }
        Node::And(_, right) => selected(right, at),
        Node::Call { name: "to_string" | "to_array" | "values" | "reverse", arguments, .. } => {
            arguments.iter().flat_map(|argument| selected(argument, at)).collect()
        }
        Node::Values { object, each, .. } if matches!(**each, Node::Current) => {
            selected(object, at)
        }
        _ => Vec::new(),
    }
}

/// Where a path of fields leads.
fn path<'n>(node: &'n Node, at: &[&'n str]) -> Option<Vec<&'n str>> {
    match node {
        Node::Current => Some(at.to_vec()),
        Node::Field { name, .. } => Some([at, &[name.to_str()?]].concat()),
        Node::Then(first, last) => path(last, &path(first, at)?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Expression;

    #[test]
    fn what_can_only_be_one_of_a_few_values() {
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
            "length(items) || id",
            "not_null(length(items), id)",
            "items[*].type(id)",
            "to_string(id)",
            "sum(items)",
            "'constant'",
        ] {
            assert_eq!(Expression::compile(many).unwrap().few_values(), None, "{many}");
        }
    }

    #[test]
    fn what_surely_holds_a_member() {
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
        ] {
            assert!(selects(text, "a.b"), "{text}");
        }
        for text in
            ["id", "b", "a.c", "[id, a.c]", "id || a.b", "a.b == 'x'", "b.a", "x.a.b", "a.*.c"]
        {
            assert!(!selects(text, "a.b"), "{text}");
        }
        let looks_at = |text| Expression::compile(text).unwrap().looks_at("a.b");
        assert!(looks_at("id || a.b") && looks_at("a.b == 'x' && id") && looks_at("a"));
        assert!(!looks_at("a.c") && !looks_at("id"));
    }
}
