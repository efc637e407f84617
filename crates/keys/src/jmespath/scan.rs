//! Scans the strings and numerals of a JSON text, with the positions of errors.

use super::value::{MOST_BYTES, Text, Variant};

/// Why a text cannot be read as a document. It names the position, never the content. Its text completes the
/// sentence "the payload is ..".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// Not JSON, or nested deeper than 127 levels.
    #[error("not valid JSON: {reason} at line {line}, column {column}")]
    Syntax {
        /// The mistake, in general terms.
        reason: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// There is no text, or only white space.
    #[error("not valid JSON: it is empty")]
    Empty,
    /// An object has two members of the same name, and JSON parsers differ in which one they use.
    #[error(
        "ambiguous: an object has two members of the same name, before line {line}, column {column}; \
         JSON parsers differ in which one they use"
    )]
    DuplicateMember {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// More than 8 MiB. No event of Lambda is that large.
    #[error("{bytes} bytes long, and at most {MOST_BYTES} are read")]
    TooLong {
        /// The length of the text.
        bytes: usize,
    },
}

pub(super) const EARLY: &str = "it ends too early";
pub(super) const CHARACTER: &str = "a character that cannot stand there";
pub(super) const ESCAPE: &str = "an invalid escape";

/// The name of a member: most have no escapes, and are not copied unless the member is wanted.
pub(super) enum Name<'a> {
    Plain(&'a str),
    Copied(Text),
}

impl Name<'_> {
    pub(super) fn to_str(&self) -> Option<&str> {
        match self {
            Self::Plain(name) => Some(name),
            Self::Copied(name) => name.to_str(),
        }
    }
}

impl From<Name<'_>> for Text {
    fn from(name: Name<'_>) -> Self {
        match name {
            Name::Plain(name) => name.into(),
            Name::Copied(name) => name,
        }
    }
}

/// How many bytes come before the first quotation mark, backslash or control character.
fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (position, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return position * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Eight bytes at once: the lowest bit that is set is the highest of the first special byte. Bits above it mean nothing.
const fn special_bytes(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const fn below(word: u64, limit: u8) -> u64 {
        word.wrapping_sub(EACH * limit as u64) & !word
    }
    let quotes = below(word ^ (EACH * b'"' as u64), 1);
    let backslashes = below(word ^ (EACH * b'\\' as u64), 1);
    (quotes | backslashes | below(word, 0x20)) & (EACH << 7)
}

/// A text, and how far it is read.
pub(super) struct Reader<'a> {
    pub(super) variant: Variant,
    pub(super) json: &'a str,
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn is_standard(&self) -> bool {
        self.variant == Variant::Standard
    }

    /// Line and column, from 1.
    pub(super) fn line_and_column(&self) -> (usize, usize) {
        let before = self.json.get(..self.at).unwrap_or(self.json);
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        (before.matches('\n').count() + 1, column + 1)
    }

    pub(super) fn error(&self, reason: &'static str) -> DocumentError {
        let (line, column) = self.line_and_column();
        DocumentError::Syntax { reason, line, column }
    }

    pub(super) fn unexpected(&self) -> DocumentError {
        self.error(if self.at < self.json.len() { CHARACTER } else { EARLY })
    }

    pub(super) fn rest(&self) -> &str {
        self.json.get(self.at..).unwrap_or("")
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    /// Skips the unescaped characters of a string.
    pub(super) fn plain(&mut self) -> &'a str {
        let rest = self.json.get(self.at..).unwrap_or("");
        let length = plain_length(rest.as_bytes());
        self.at += length;
        rest.get(..length).unwrap_or("")
    }

    /// Skips an escape and returns its UTF-16 unit; `None` at the end of the string.
    pub(super) fn special(&mut self) -> Result<Option<u16>, DocumentError> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                Ok(None)
            }
            Some(b'\\') => {
                self.at += 1;
                self.escape().map(Some).ok_or_else(|| self.error(ESCAPE))
            }
            Some(_) => Err(self.error("a control character in a string")),
            None => Err(self.error(EARLY)),
        }
    }

    /// A string without escapes; `None`, and nothing is read, if it has some or is no string.
    fn plain_string(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.at += 1;
        let text = self.plain();
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Some(text);
        }
        self.at = start;
        None
    }

    pub(super) fn name_of_member(&mut self) -> Result<Name<'a>, DocumentError> {
        match self.plain_string() {
            Some(name) => Ok(Name::Plain(name)),
            None => self.escaped().map(Name::Copied),
        }
    }

    pub(super) fn string(&mut self) -> Result<Text, DocumentError> {
        match self.plain_string() {
            Some(text) => Ok(text.into()),
            None => self.escaped(),
        }
    }

    fn escaped(&mut self) -> Result<Text, DocumentError> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        let mut high = None;
        loop {
            let before = self.at;
            text.push_str(self.plain());
            let half_alone = high.is_some() && self.at > before;
            let unit = self.special()?;
            match (high.take(), unit) {
                (None, None) => return Ok(text.as_str().into()),
                (None, Some(unit @ 0xD800..0xDC00)) => high = Some(unit),
                (Some(first), Some(unit @ 0xDC00..0xE000)) if !half_alone => {
                    text.extend(char::decode_utf16([first, unit]).flatten());
                }
                (None, Some(unit)) => match char::from_u32(unit.into()) {
                    Some(c) => text.push(c),
                    None => return self.string_of_units(start),
                },
                (Some(_), _) => return self.string_of_units(start),
            }
        }
    }

    /// A string with half surrogates.
    pub(super) fn string_of_units(&mut self, start: usize) -> Result<Text, DocumentError> {
        if self.is_standard() {
            return Err(self.error(ESCAPE));
        }
        self.at = start + 1;
        let mut units = Vec::new();
        loop {
            units.extend(self.plain().encode_utf16());
            match self.special()? {
                None => return Ok(Text::from_units(&units)),
                Some(unit) => units.push(unit),
            }
        }
    }

    pub(super) fn escape(&mut self) -> Option<u16> {
        let kind = self.peek()?;
        self.at += 1;
        Some(match kind {
            b'"' | b'\\' | b'/' => kind.into(),
            b'b' => 8,
            b'f' => 12,
            b'n' => 10,
            b'r' => 13,
            b't' => 9,
            b'u' => {
                let digits = self.json.get(self.at..self.at.checked_add(4)?)?;
                if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                self.at += 4;
                u16::from_str_radix(digits, 16).ok()?
            }
            _ => return None,
        })
    }

    pub(super) fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// A numeral, and whether it is one of an integer.
    pub(super) fn numeral(&mut self) -> Result<(&'a str, bool), DocumentError> {
        let start = self.at;
        self.take("-");
        if !self.take("0") && self.digits() == 0 {
            return Err(self.unexpected());
        }
        let mut is_integer = true;
        if self.take(".") {
            is_integer = false;
            if self.digits() == 0 {
                return Err(self.unexpected());
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_integer = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(self.unexpected());
            }
        }
        Ok((self.json.get(start..self.at).unwrap_or(""), is_integer))
    }

    pub(super) fn skip_name(&mut self) -> Result<(), DocumentError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.skip_string()?;
        self.skip_space();
        if self.take(":") { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn skip_string(&mut self) -> Result<(), DocumentError> {
        self.at += 1;
        loop {
            self.plain();
            if self.special()?.is_none() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_special_byte_is_found_wherever_it_is() {
        let is_special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        for byte in 0..=u8::MAX {
            for length in 0..20 {
                for at in 0..length {
                    // Later bytes must not hide the first one.
                    for after in [b'a', b'"', b'!', 0x1f, 0x80, 0xff] {
                        let mut bytes = vec![b'z'; at];
                        bytes.push(byte);
                        bytes.resize(length, after);
                        let expected = bytes.iter().position(|byte| is_special(*byte));
                        assert_eq!(plain_length(&bytes), expected.unwrap_or(length), "{bytes:?}");
                    }
                }
            }
        }
    }
}
