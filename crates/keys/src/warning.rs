//! Warns of functions and operators that can give distinct records the same key.

use std::fmt;

use super::jmespath::{ast::Node, limits};

/// A place in an expression where distinct values can become equal.
///
/// This is not an error, because it may be intended, as with `sort(items)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    function: String,
    offset: usize,
    example: &'static str,
}

impl Warning {
    /// The name of the function, or the operator (`[]` or `*`).
    #[must_use]
    pub fn function(&self) -> &str {
        &self.function
    }

    /// Where its arguments begin, or where the operator is, in characters from the start of the
    /// expression.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, offset, example } = self;
        write!(f, "`{function}` at offset {offset} can make distinct values equal: {example}")
    }
}

/// An example of distinct values that the function makes equal; `None` if it keeps distinct values
/// distinct, or only selects among them.
fn example_of_fold(function: &str) -> Option<&'static str> {
    Some(match function {
        "to_string" => {
            "42 and \"42\" become the same text; numbers can be used in a key without it"
        }
        "join" => {
            "with '-', both [\"a-b\", \"c\"] and [\"a\", \"b-c\"] become \"a-b-c\"; \
             use `[a, b]`, a key of two parts"
        }
        "to_number" => "7 and \"7\" become the same number, and so do \"0.5\" and \"0.50\"",
        "to_array" => "\"a\" and [\"a\"] become the same list",
        "merge" => {
            "a member of a later object replaces the member of the same name of an earlier one"
        }
        "abs" | "ceil" | "floor" => {
            "distinct numbers are rounded to the same number, or lose their sign"
        }
        "length" | "type" => "many distinct values have the same result",
        "contains" | "starts_with" | "ends_with" => "the result is only true or false",
        "keys" => "the values of the members are left out",
        "values" | "*" => "the names of the members are left out",
        "[]" => "[[1], [2]] and [[1, 2]] become [1, 2]; `[*]` keeps nested lists distinct",
        "sort" | "sort_by" => "lists that differ only in their order become equal",
        _ => return None,
    })
}

/// Warns of each function and operator whose result becomes part of the key and that can make
/// distinct values equal.
pub(super) fn of(node: &Node, text: &str) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut fold = |function: &str, offset| {
        if let Some(example) = example_of_fold(function) {
            let offset = limits::characters(text, offset);
            found.push(Warning { function: function.to_owned(), offset, example });
        }
    };
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        match node {
            Node::Call { name, offset, .. } if node.reads_data() => fold(name, *offset),
            Node::Flatten { list, offset } if list.reads_data() => fold("[]", *offset),
            Node::Values { object, offset, .. } if object.reads_data() => fold("*", *offset),
            Node::Call { .. } => continue,
            _ => {}
        }
        open.extend(node.sources());
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
    fn functions_that_can_make_values_equal_are_warned_of_with_their_offset() {
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
    fn functions_that_only_decide_or_select_are_not_warned_of() {
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
}
