//! How large a document and an expression may be.

use super::{Mistake, tokens::Token};

/// The most bytes of a document: more than any event that Lambda delivers (6 MB).
pub(crate) const MOST_BYTES: usize = 8 << 20;
/// The longest expression in bytes: short enough to be quoted in messages.
pub(crate) const LONGEST: usize = 4096;
/// Each level of an expression needs stack when it is parsed and evaluated. This many are safe on a
/// thread with 2 MiB of stack, even without optimisation.
const MOST_OPERATORS: usize = 100;

pub(crate) fn check_length(text: &str) -> Result<(), Mistake> {
    if text.len() > LONGEST {
        return Err((0, format!("it is longer than {LONGEST} bytes; shorten it")));
    }
    Ok(())
}

/// Refuses expressions that could exhaust the stack.
pub(crate) fn check_operators(tokens: &[(usize, Token)]) -> Result<(), Mistake> {
    let is_operator =
        |(_, token): &&(usize, Token)| matches!(token, Token::Sign('.' | '[' | '(' | '{' | '|'));
    match tokens.iter().filter(is_operator).nth(MOST_OPERATORS) {
        None => Ok(()),
        Some((at, _)) => {
            Err((*at, format!("it has more than {MOST_OPERATORS} operators; simplify it")))
        }
    }
}

/// Messages count characters where the parser counts bytes.
pub(crate) fn characters(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(offset, |before| before.chars().count())
}
