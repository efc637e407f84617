//! Functions and operators that can give distinct records one key.

use std::fmt;

use super::{jmespath::ast::Node, limits};

/// A place in an expression where distinct values can become one.
///
/// Not an error: that may be what is meant, as with `sort(items)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    function: String,
    offset: usize,
    example: &'static str,
}

impl Warning {
    /// The function; or the operator, `[]` or `*`.
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Where its arguments begin, or the operator stands: characters from the start of the
    /// expression.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, offset, example } = self;
        write!(f, "`{function}` at offset {offset} can make distinct values one: {example}")
    }
}

/// What it makes one; `None` if it keeps apart what is distinct, or selects.
fn folds(function: &str) -> Option<&'static str> {
    Some(match function {
        "to_string" => "42 and \"42\" become the same text; a key may hold numbers as they are",
        "join" => {
            "with '-', both [\"a-b\", \"c\"] and [\"a\", \"b-c\"] become \"a-b-c\"; \
             `[a, b]` is a key of two parts"
        }
        "to_number" => "7 and \"7\" become the same number; so do \"0.5\" and \"0.50\"",
        "to_array" => "\"a\" and [\"a\"] become the same list",
        "merge" => "a member of one object hides that of another",
        "abs" | "ceil" | "floor" => "numbers that differ are rounded, or lose their sign",
        "avg" | "sum" | "length" | "type" => "it says something about a value that others share",
        "contains" | "starts_with" | "ends_with" => "all that it says is true or false",
        "keys" => "the values of the members are left out",
        "values" | "*" => "the names of the members are left out",
        "[]" => "[[1], [2]] and [[1, 2]] become [1, 2]; `[*]` keeps apart what is nested",
        "sort" | "sort_by" => "lists that differ only in their order become the same",
        _ => return None,
    })
}

/// The functions and operators whose result is part of the value, and what they can fold.
pub(super) fn of(node: &Node, text: &str) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut fold = |function: &str, offset| {
        if let Some(example) = folds(function) {
            let offset = limits::characters(text, offset);
            found.push(Warning { function: function.to_owned(), offset, example });
        }
    };
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match node {
            Node::Call { name, arguments, offset } if node.reads_data() => {
                fold(name, *offset);
                // What a reference decides is the order, or which item: not what is in the value.
                let maps = *name == "map";
                open.extend(arguments.iter().filter(|a| maps || !matches!(a, Node::Reference(_))));
            }
            Node::Flatten { list, offset } if list.reads_data() => {
                fold("[]", *offset);
                open.push(list);
            }
            Node::Values { object, each, offset } if object.reads_data() => {
                fold("*", *offset);
                open.extend([&**object, each]);
            }
            // Which records have a key, or which items are selected: not what is in the value.
            Node::Filter { list, each, .. } => open.extend([&**list, each]),
            Node::Compare { .. } | Node::Not(_) | Node::Call { .. } => {}
            _ => open.extend(node.children()),
        }
    }
    found.sort_by_key(Warning::offset);
    found
}

#[cfg(test)]
mod tests {
    use super::super::Expression;

    fn warned(expression: &str) -> Vec<(String, usize)> {
        let expression = Expression::compile(expression).unwrap();
        let warnings = expression.warnings().iter();
        warnings.map(|warning| (warning.function().to_owned(), warning.offset())).collect()
    }

    #[test]
    fn what_can_fold_in_a_key_is_named_with_its_place() {
        for (expression, expected) in [
            ("to_string(id)", vec![("to_string", 9)]),
            ("join('-', [a, b])", vec![("join", 4)]),
            ("[a, to_string(b), join('', c)]", vec![("to_string", 13), ("join", 22)]),
            ("{\"é\": to_string(b)}", vec![("to_string", 15)]),
            ("join('-', [to_string(a), b])", vec![("join", 4), ("to_string", 20)]),
            ("items[*].to_string(id)", vec![("to_string", 18)]),
            ("map(&to_string(id), items)", vec![("to_string", 14)]),
            ("sort(items)", vec![("sort", 4)]),
            ("items[].id", vec![("[]", 5)]),
            ("[id, \"é\".*.id[]]", vec![("*", 9), ("[]", 13)]),
            ("*", vec![("*", 0)]),
            ("json(body).items[][0].lines[*].id[]", vec![("[]", 16), ("[]", 33)]),
            ("sort(a[])", vec![("sort", 4), ("[]", 6)]),
            ("length(items) || keys(@)", vec![("length", 6), ("keys", 21)]),
        ] {
            let expected: Vec<_> =
                expected.into_iter().map(|(name, at)| (name.to_owned(), at)).collect();
            assert_eq!(warned(expression), expected, "{expression}");
        }
    }

    #[test]
    fn what_decides_or_selects_is_not_warned_of() {
        for expression in [
            "[tenant, order.id]",
            "items[?length(name) > `3`].id",
            "items[?starts_with(id, 'a')] | [0].id",
            "sort(items) == list",
            "items[*].lines[ * ].id",
            "items[?lines[] == `[]`] | [0].id",
            "[id, !(a.*)]",
            "[id, `[1]`[]]",
            "!contains(items, 'a')",
            "max_by(items, &length(name)).id",
            "[id, to_string('a')]",
            "json(body).id",
            "base64(body)",
            "not_null(a, b)",
            "reverse(items)",
        ] {
            assert_eq!(warned(expression), [], "{expression}");
        }
    }

    #[test]
    fn it_says_what_to_do() {
        let expression = Expression::compile("join('-', [a, b])").unwrap();
        let warning = expression.warnings().first().unwrap().to_string();
        assert!(warning.starts_with("`join` at offset 4"), "{warning}");
        assert!(warning.contains("`[a, b]` is a key of two parts"), "{warning}");
    }
}
