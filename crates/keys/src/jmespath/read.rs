//! Parses JSON text, in the library variants exactly as `json.loads` and `JSON.parse` do. The
//! standard variant refuses text that parsers read differently, and can parse only the fields that
//! are wanted.

use std::sync::Arc;

use super::{
    ast::Wanted,
    decimal::Decimal,
    value::{Kind, MOST_BYTES, Members, Number, Text, Value, Variant},
};

/// The deepest nesting of documents in the library variants. In the standard variant the limit is
/// less by two, as in `serde_json`.
const DEEPEST: usize = 128;
/// More digits than Python reads as an integer.
/// <https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation>
const MOST_DIGITS: usize = 4300;
/// From this value on, neighbouring integers have the same double.
pub(crate) const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Whether the library might accept a text that exceeds our limits.
pub(crate) fn is_beyond_us(error: &DocumentError) -> bool {
    match error {
        DocumentError::Syntax { reason, .. } => *reason == DEEP,
        error => matches!(error, DocumentError::TooLong { .. }),
    }
}

/// Reads a whole text.
pub(crate) fn read(variant: Variant, json: &str) -> Result<Value, DocumentError> {
    read_wanted(variant, json, &Wanted::All)
}

/// Parses only the wanted fields of a text. The rest is only roughly checked to be JSON.
pub(crate) fn read_wanted(
    variant: Variant,
    json: &str,
    wanted: &Wanted,
) -> Result<Value, DocumentError> {
    if json.len() > MOST_BYTES {
        return Err(DocumentError::TooLong { bytes: json.len() });
    }
    if json.bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        return Err(DocumentError::Empty);
    }
    let mut reader = Reader { variant, json, at: 0 };
    let value = reader.value(wanted, 0)?;
    reader.skip_space();
    if reader.at < json.len() { Err(reader.error(CHARACTER)) } else { Ok(value) }
}

const DEEP: &str = "too deep a nesting";
const TOO_LARGE: &str = "a number that is larger than any double";
const TOO_SMALL: &str = "a number with an exponent beyond 4 * 10^18; send it as a string";

impl Reader<'_> {
    fn value(&mut self, wanted: &Wanted, depth: usize) -> Result<Value, DocumentError> {
        if depth > DEEPEST {
            return Err(self.error(DEEP));
        }
        self.skip_space();
        match (self.peek(), wanted) {
            (Some(b'{' | b'['), _) if self.is_standard() && depth > DEEPEST - 2 => {
                Err(self.error(DEEP))
            }
            (Some(b'{'), _) => self.object(wanted, depth),
            (Some(b'['), Wanted::All) => self.array(depth),
            (Some(b'"'), Wanted::All) => self.string().map(Value::String),
            // Only members are wanted, and a list or a text has none, so its content is skipped.
            (Some(b'['), Wanted::Members(_)) => self.skip().map(|()| Value::array(vec![])),
            (Some(b'"'), Wanted::Members(_)) => self.skip().map(|()| Value::text("")),
            (Some(b'-' | b'0'..=b'9'), _) => self.number(),
            _ => self.name(),
        }
    }

    fn name(&mut self) -> Result<Value, DocumentError> {
        match self.peek() {
            _ if self.take("null") => Ok(Value::Null),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ if self.take_constant("NaN") => Ok(not_finite(f64::NAN)),
            _ if self.take_constant("Infinity") => Ok(not_finite(f64::INFINITY)),
            _ => Err(self.unexpected()),
        }
    }

    /// Skips a value of any depth without recursion.
    fn skip(&mut self) -> Result<(), DocumentError> {
        let mut open = Vec::new();
        loop {
            self.skip_space();
            let first = self.peek();
            match first {
                Some(b'{' | b'[') => {
                    self.at += 1;
                    self.skip_space();
                    let close = if first == Some(b'{') { b'}' } else { b']' };
                    if self.peek() == Some(close) {
                        self.at += 1;
                    } else {
                        open.push(close);
                        if close == b'}' {
                            self.skip_name()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.skip_string()?,
                Some(b'-' | b'0'..=b'9') => drop(self.numeral()?),
                _ => drop(self.name()?),
            }
            loop {
                let Some(close) = open.last().copied() else { return Ok(()) };
                self.skip_space();
                match self.peek() {
                    Some(byte) if byte == close => {
                        self.at += 1;
                        open.pop();
                    }
                    Some(b',') => {
                        self.at += 1;
                        if close == b'}' {
                            self.skip_name()?;
                        }
                        break;
                    }
                    _ => return Err(self.unexpected()),
                }
            }
        }
    }

    /// Python accepts constants that are not JSON.
    fn take_constant(&mut self, text: &str) -> bool {
        self.variant.is_python() && self.take(text)
    }

    fn array(&mut self, depth: usize) -> Result<Value, DocumentError> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take("]") {
            return Ok(Value::array(items));
        }
        loop {
            items.push(self.value(&Wanted::All, depth + 1)?);
            self.skip_space();
            if self.take("]") {
                return Ok(Value::array(items));
            }
            if !self.take(",") {
                return Err(self.unexpected());
            }
        }
    }

    fn object(&mut self, wanted: &Wanted, depth: usize) -> Result<Value, DocumentError> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        let mut more = !self.take("}");
        while more {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let name = self.name_of_member()?;
            self.skip_space();
            if !self.take(":") {
                return Err(self.unexpected());
            }
            let inside = match wanted {
                Wanted::All => Some(wanted),
                Wanted::Members(members) => name.to_str().and_then(|name| members.get(name)),
            };
            match inside {
                Some(inside) => members.push((name.into(), self.value(inside, depth + 1)?)),
                None => self.skip()?,
            }
            self.skip_space();
            more = !self.take("}");
            if more && !self.take(",") {
                return Err(self.unexpected());
            }
        }
        let members = Members::new(self.variant, members);
        if members.repeated && self.is_standard() {
            self.at -= 1;
            let (line, column) = self.line_and_column();
            return Err(DocumentError::DuplicateMember { line, column });
        }
        Ok(Value::Object(Arc::new(members)))
    }

    fn number(&mut self) -> Result<Value, DocumentError> {
        if self.variant.is_python() && self.take("-Infinity") {
            return Ok(not_finite(f64::NEG_INFINITY));
        }
        let (text, is_integer) = self.numeral()?;
        Ok(match self.variant {
            Variant::Standard if is_64_bits(text) => Value::integer(text),
            Variant::Standard => {
                let decimal = Decimal::of(text);
                if !decimal.is_in_range() {
                    return Err(self.error(TOO_LARGE));
                }
                if !decimal.has_exact_exponent() {
                    return Err(self.error(TOO_SMALL));
                }
                let (kind, exact) = (Kind::Double(decimal.nearest()), decimal.is_exact());
                Value::Number(Number { kind, exact })
            }
            Variant::Python(_)
                if is_integer && text.trim_start_matches('-').len() > MOST_DIGITS =>
            {
                return Err(self.error("an integer of more digits than Python reads"));
            }
            // Python's integers have no negative zero.
            Variant::Python(_) if text == "-0" => Value::integer("0"),
            Variant::Python(_) if is_integer => Value::integer(text),
            variant => Value::Number(number(variant, text)),
        })
    }
}

fn not_finite(double: f64) -> Value {
    Value::Number(Number { kind: Kind::Double(double), exact: false })
}

/// An integer. `-0` is a double, whose sign counts.
fn is_64_bits(numeral: &str) -> bool {
    numeral != "-0" && (numeral.parse::<u64>().is_ok() || numeral.parse::<i64>().is_ok())
}

/// A numeral as its nearest double, or infinity.
fn number(variant: Variant, numeral: &str) -> Number {
    let double = numeral.parse::<f64>().unwrap_or(f64::NAN);
    let exact = is_64_bits(numeral) || Decimal::of(numeral).is_exact();
    // Beyond this limit, JavaScript reads neighbouring integers as the same double.
    let told_apart = variant.is_python() || double.abs() < EXACT_LIMIT;
    Number { kind: Kind::Double(double), exact: exact && told_apart }
}

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
    /// The text is empty, or only white space.
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

const EARLY: &str = "it ends too early";
const CHARACTER: &str = "a character that cannot stand there";
const ESCAPE: &str = "an invalid escape";

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
struct Reader<'a> {
    pub(super) variant: Variant,
    pub(super) json: &'a str,
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    fn is_standard(&self) -> bool {
        self.variant == Variant::Standard
    }

    /// Line and column, from 1.
    fn line_and_column(&self) -> (usize, usize) {
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

    fn skip_space(&mut self) {
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

    fn name_of_member(&mut self) -> Result<Name<'a>, DocumentError> {
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
    fn string_of_units(&mut self, start: usize) -> Result<Text, DocumentError> {
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

    fn skip_name(&mut self) -> Result<(), DocumentError> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        self.skip_string()?;
        self.skip_space();
        if self.take(":") { Ok(()) } else { Err(self.unexpected()) }
    }

    fn skip_string(&mut self) -> Result<(), DocumentError> {
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
