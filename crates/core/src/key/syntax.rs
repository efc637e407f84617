//! What can be found, and set right, in an expression before it meets any data.

use std::{collections::BTreeSet, sync::Arc};

use jmespath::{
    ErrorReason,
    ast::{Ast, KeyValuePair},
};

use super::{Document, Functions, numeral::Side, signatures, signs};

/// Where a mistake is, and what it is.
pub(super) type Mistake = (usize, String);

/// Longer than any list. Beyond it, JMESPath's own arithmetic overflows.
const LONGEST_STEP: i32 = 1 << 30;

/// Parses an expression, of which nothing but its syntax is then known to be right.
pub(super) fn parse(text: &str) -> Result<Ast, Mistake> {
    if text.trim().is_empty() {
        return Err((0, "it is empty; `@` stands for the whole payload".to_owned()));
    }
    signs::check_size(text)?;
    let mut ast = jmespath::parse(text).map_err(|error| {
        let reason = match error.reason {
            ErrorReason::Parse(reason) => in_plain_words(&reason),
            ErrorReason::Runtime(reason) => reason.to_string(),
        };
        (error.offset, reason)
    })?;
    place(&mut ast, &mut signs::folding(text));
    Ok(ast)
}

/// The parser's message, without the names that its own code has for tokens, and with what to do.
fn in_plain_words(reason: &str) -> String {
    let (reason, found) = reason.split_once(" -- found ").unwrap_or((reason, ""));
    let reason = match reason {
        "Unexpected nud token" => "expected a value here",
        "Unexpected led token" => "this cannot follow a value",
        "Did not parse the complete expression" => "the expression could end here, and goes on",
        "Expected Field to start key value pair" => "expected the name of a part",
        "Too many colons in slice expr" => "a slice has two colons at most",
        reason => reason,
    };
    let (first, rest) = reason.split_at(reason.chars().next().map_or(0, char::len_utf8));
    let more = if found == "Eof" {
        ", but it ends"
    } else if reason.starts_with("'-'") || reason.starts_with("Invalid character") {
        "; a name that holds it is written in double quotes"
    } else {
        ""
    };
    format!("{}{rest}{more}", first.to_lowercase())
}

/// Gives the operators `[]` and `*` their places: the parser gives them that of what follows them.
fn place(ast: &mut Ast, places: &mut impl Iterator<Item = usize>) {
    children_mut(ast).into_iter().for_each(|child| place(child, places));
    if let Ast::Flatten { offset, .. } | Ast::ObjectValues { offset, .. } = ast {
        *offset = places.next().unwrap_or(*offset);
    }
}

/// What helps where a function is not known.
const OWN: &str = "one of your own is added with `.functions(..)`";

/// Finds what would fail for every record, or lose a part of every key: unknown functions, wrong
/// numbers of arguments, references where there must be values, a step of 0, a name for two parts.
/// Reads literals anew, since what `serde_json` makes of their numbers depends on its features.
pub(super) fn settle(ast: &mut Ast, text: &str, functions: &Functions) -> Result<(), Mistake> {
    match ast {
        Ast::Function { offset, name, args } => {
            let arity = functions
                .arity(name)
                .ok_or_else(|| (*offset, format!("there is no function `{name}`; {OWN}")))?;
            signatures::check(name, arity, args.len()).map_err(|reason| (*offset, reason))?;
            let by_reference = takes_reference(name);
            return (0..).zip(args).try_for_each(|(place, argument)| match argument {
                Ast::Expref { ast, .. } if by_reference == Some(place) => {
                    settle(ast, text, functions)
                }
                _ if by_reference == Some(place) => {
                    let reason = "takes an expression reference (`&name`) as argument";
                    Err((*offset, format!("`{name}` {reason} {}", place + 1)))
                }
                argument => settle(argument, text, functions),
            });
        }
        Ast::Expref { offset, .. } => {
            let reason = "an expression reference (`&name`) is no value; \
                          `map`, `sort_by`, `max_by` and `min_by` take one";
            return Err((*offset, reason.to_owned()));
        }
        Ast::MultiHash { offset, elements } => {
            let mut names = BTreeSet::new();
            if let Some(twice) = elements.iter().find(|part| !names.insert(&part.key)) {
                let reason = format!("two parts are named `{}`; one would be lost", twice.key);
                return Err((*offset, reason));
            }
        }
        Ast::Literal { offset, value } => {
            if let Some(json) = literal(text, *offset) {
                let document = Document::parse(&json).map_err(|e| (*offset, e.to_string()))?;
                if !document.is_exact() {
                    let reason = "it holds a number that a double cannot hold exactly";
                    return Err((*offset, reason.to_owned()));
                }
                *value = Arc::clone(document.on(Side::Below));
            }
        }
        Ast::Slice { offset, step: 0, .. } => {
            return Err((*offset, "the step of a slice cannot be 0".to_owned()));
        }
        Ast::Slice { step, .. } => *step = (*step).clamp(-LONGEST_STEP, LONGEST_STEP),
        _ => {}
    }
    children_mut(ast).into_iter().try_for_each(|child| settle(child, text, functions))
}

/// Which argument of a function is an expression, and not its value.
fn takes_reference(function: &str) -> Option<usize> {
    match function {
        "map" => Some(0),
        "max_by" | "min_by" | "sort_by" => Some(1),
        _ => None,
    }
}

/// The JSON of the literal that begins at `offset`; `None` if that is a raw string.
pub(super) fn literal(text: &str, offset: usize) -> Option<String> {
    let inside = text.get(offset..)?.strip_prefix('`')?;
    let mut characters = inside.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '`' => return Some(inside.get(..at)?.replace("\\`", "`")),
            '\\' => drop(characters.next()),
            _ => {}
        }
    }
    None
}

/// Whether it looks at the data at all: `'orderId'` is a text, and the same for every record.
pub(super) fn reads_data(ast: &Ast) -> bool {
    let mut open = vec![ast];
    while let Some(ast) = open.pop() {
        if matches!(
            ast,
            Ast::Identity { .. } | Ast::Field { .. } | Ast::Index { .. } | Ast::Slice { .. }
        ) {
            return true;
        }
        open.extend(children(ast));
    }
    false
}

/// Messages count characters where the parser counts bytes.
pub(super) fn characters(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(offset, |before| before.chars().count())
}

macro_rules! children {
    ($ast:expr, $iter:ident) => {
        match $ast {
            Ast::Identity { .. }
            | Ast::Field { .. }
            | Ast::Index { .. }
            | Ast::Literal { .. }
            | Ast::Slice { .. } => vec![],
            Ast::Expref { ast: node, .. }
            | Ast::Flatten { node, .. }
            | Ast::Not { node, .. }
            | Ast::ObjectValues { node, .. } => vec![node],
            Ast::Condition { predicate: lhs, then: rhs, .. }
            | Ast::Comparison { lhs, rhs, .. }
            | Ast::Projection { lhs, rhs, .. }
            | Ast::And { lhs, rhs, .. }
            | Ast::Or { lhs, rhs, .. }
            | Ast::Subexpr { lhs, rhs, .. } => vec![lhs, rhs],
            Ast::Function { args: nodes, .. } | Ast::MultiList { elements: nodes, .. } => {
                nodes.$iter().collect()
            }
            Ast::MultiHash { elements, .. } => {
                elements.$iter().map(|KeyValuePair { value, .. }| value).collect()
            }
        }
    };
}

pub(super) fn children(ast: &Ast) -> Vec<&Ast> {
    children!(ast, iter)
}

fn children_mut(ast: &mut Ast) -> Vec<&mut Ast> {
    children!(ast, iter_mut)
}

#[cfg(test)]
mod tests {
    use super::super::Expression;
    use super::*;

    #[test]
    fn steps_beyond_any_list_do_not_overflow() {
        let list = Document::parse("[1,2,3]").unwrap();
        for (text, selected) in [
            ("[1::2147483647]", "[2]"),
            ("[1::-2147483647]", "[2]"),
            ("[-2147483647:2147483647:1073741825]", "[1]"),
        ] {
            let selection = Expression::compile(text).unwrap().select(&list).unwrap();
            assert_eq!(selection.canonical_bytes(), selected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn literals_are_read_as_documents_are() {
        let nothing = Document::parse("[]").unwrap();
        for (text, selected) in [
            ("`1`", "1"),
            ("[`2.50`, '`3`', `{\"a\":[4,\"\\`\"]}`]", r#"[2.5e0,"`3`",{"a":[4,"`"]}]"#),
            ("`18446744073709551615`", "18446744073709551615"),
        ] {
            let expression = Expression::compile(&format!("@ || {text}")).unwrap();
            let selection = expression.select(&nothing).unwrap();
            assert_eq!(String::from_utf8_lossy(selection.canonical_bytes()), selected);
        }
        for (text, reason) in [
            ("a == `0.1000000000000000055`", "cannot hold exactly"),
            ("a == `{\"a\":1,\"a\":2}`", "twice"),
        ] {
            let error = Expression::compile(text).unwrap_err();
            assert!(error.reason().contains(reason), "{error}");
            assert_eq!(error.offset(), 5);
        }
    }
}
