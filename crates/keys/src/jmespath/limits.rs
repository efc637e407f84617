//! How large a document and an expression may be.

use super::Mistake;

/// The most bytes of a document: more than any event that Lambda delivers (6 MB).
pub(crate) const MOST_BYTES: usize = 8 << 20;
/// The longest expression in bytes: short enough to be quoted in messages.
pub(crate) const LONGEST: usize = 4096;
/// Each level of an expression needs stack when it is parsed and evaluated. This many are safe on a
/// thread with 2 MiB of stack, even without optimisation.
const MOST_OPERATORS: usize = 100;

/// The characters of an expression with their byte offsets, without quoted text and white space.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut characters = text.char_indices();
    std::iter::from_fn(move || {
        let (at, c) = characters.by_ref().find(|(_, c)| !c.is_ascii_whitespace())?;
        if matches!(c, '\'' | '"' | '`') {
            skip_quoted(&mut characters, c);
        }
        Some((at, c))
    })
}

fn skip_quoted(characters: &mut std::str::CharIndices<'_>, quote: char) {
    while let Some((_, c)) = characters.next() {
        if c == quote {
            return;
        }
        if c == '\\' {
            characters.next();
        }
    }
}

/// Refuses expressions that could exhaust the stack.
pub(crate) fn check_size(text: &str) -> Result<(), Mistake> {
    if text.len() > LONGEST {
        return Err((0, format!("it is longer than {LONGEST} bytes; shorten it")));
    }
    let is_operator = |(_, c): &(usize, char)| ".[({!&|*=<>".contains(*c);
    match unquoted(text).filter(is_operator).nth(MOST_OPERATORS) {
        None => Ok(()),
        Some((at, _)) => {
            Err((at, format!("it has more than {MOST_OPERATORS} operators; simplify it")))
        }
    }
}

/// Messages count characters where the parser counts bytes.
pub(crate) fn characters(text: &str, offset: usize) -> usize {
    text.get(..offset).map_or(offset, |before| before.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_not_counted_as_operators() {
        let quoted = r"\'!.[*]".repeat(80);
        assert_eq!(check_size(&format!("'{quoted}'")), Ok(()));
        assert_eq!(check_size(&format!("'{quoted}' || \"{quoted}\" == `{quoted}`")), Ok(()));
        assert_eq!(check_size(&"a".repeat(LONGEST + 1)).unwrap_err().0, 0);
    }
}
