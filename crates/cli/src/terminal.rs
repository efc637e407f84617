//! Standard input and output: text that cannot control the terminal, and errors of reading and writing that are told.

use std::{
    fmt::Display,
    io::{self, ErrorKind, Read as _, Write as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::failure::Failure;

/// Prints a text and the end of its last line. A closed pipe is not an error; a full disk is.
pub(crate) fn print(text: &str) -> io::Result<()> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let text = format!("cannot write to standard output: {error}");
            Err(io::Error::new(error.kind(), text))
        }
        done => done,
    }
}

/// Prints a line on standard error. If nobody reads it any more, the command goes on.
pub(crate) fn tell(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// `1 record`, `2 records`.
pub(crate) fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Replaces what could move the cursor, set a title or turn the direction of the text: keys, names and messages come
/// from events, functions and tables.
pub(crate) fn printable(text: &str) -> String {
    let shown = |letter: char| match letter {
        '\n' => letter,
        '\t' => ' ',
        letter if is_unsafe(letter) => '\u{fffd}',
        letter => letter,
    };
    text.chars().map(shown).collect()
}

/// A JSON document that is safe to show.
pub(crate) fn document(document: &serde_json::Value) -> String {
    escaped(&format!("{document:#}"))
}

/// Escapes what [`printable`] replaces: in JSON it occurs in strings only.
fn escaped(json: &str) -> String {
    let mut text = String::new();
    for letter in json.chars() {
        if letter != '\n' && is_unsafe(letter) {
            text.push_str(&format!("\\u{:04x}", u32::from(letter)));
        } else {
            text.push(letter);
        }
    }
    text
}

/// Whether a letter could move the cursor, set a title or turn the direction of the text.
pub(crate) fn is_unsafe(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    letter.is_control() || turns
}

const REMEDY: &str = "Name a file, or `-` for standard input. `lambda-idempotency event sqs --body '...' > event.json` makes an event.";

/// Whether somebody is yet to write to standard input, or to close it.
pub(crate) static IS_WAITED_FOR: AtomicBool = AtomicBool::new(false);

/// The text of a file; `-` is standard input, which can be read once.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    let failed =
        |error| Failure::from(format!("cannot read {}: {error}", path.display())).remedy(REMEDY);
    if path != Path::new("-") {
        return std::fs::read_to_string(path).map(without_mark).map_err(failed);
    }
    if IS_READ.swap(true, Ordering::Relaxed) {
        return Err("standard input (`-`) is given more than once, and can be read once".into());
    }
    let mut text = String::new();
    IS_WAITED_FOR.store(true, Ordering::Relaxed);
    let read = std::io::stdin().read_to_string(&mut text);
    IS_WAITED_FOR.store(false, Ordering::Relaxed);
    read.map_err(failed)?;
    Ok(without_mark(text))
}

/// A text without the mark with which some editors begin a file.
fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_control_the_terminal() {
        assert_eq!(
            printable("a\tb\n\u{1b}[31m\u{9b}2J\r\u{7}\u{202e}é"),
            "a b\n\u{fffd}[31m\u{fffd}2J\u{fffd}\u{fffd}\u{fffd}é"
        );
    }

    #[test]
    fn a_document_keeps_its_values() {
        let value = serde_json::json!({ "key": "\u{1b}[31m\u{9b}\u{7f}\u{202e}\n\"é" });
        let text = document(&value);
        assert!(text.chars().all(|letter| letter == '\n' || !is_unsafe(letter)), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
