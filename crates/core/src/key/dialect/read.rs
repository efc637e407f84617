//! JSON text as `json.loads` and `JSON.parse` read it, to the last digit.

use std::sync::Arc;

use super::{
    Library,
    value::{Kind, Members, Number, Text, Value},
};
use crate::key::{DocumentError, document::MOST_BYTES, numeral};

/// As deep as other documents may be.
const DEEPEST: usize = 128;
/// More digits than Python reads as an integer.
/// <https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation>
pub(super) const MOST_DIGITS: usize = 4300;
/// From here on, neighbouring integers share a double.
pub(super) const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Whether the library reads further than we do.
pub(super) fn is_beyond_us(error: &DocumentError) -> bool {
    match error {
        DocumentError::Syntax { reason, .. } => *reason == DEEP,
        error => matches!(error, DocumentError::TooLong { .. }),
    }
}

/// Reads a whole text.
pub(super) fn read(library: Library, json: &str) -> Result<Value, DocumentError> {
    if json.len() > MOST_BYTES {
        return Err(DocumentError::TooLong { bytes: json.len() });
    }
    let mut reader = Reader { library, json, at: 0 };
    let value = reader.value(0)?;
    reader.skip_space();
    if reader.at < json.len() { Err(reader.error(CHARACTER)) } else { Ok(value) }
}

const DEEP: &str = "too deep a nesting";
const EARLY: &str = "it ends too early";
const CHARACTER: &str = "a character that cannot stand there";

struct Reader<'a> {
    library: Library,
    json: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn error(&self, reason: &'static str) -> DocumentError {
        let before = self.json.get(..self.at).unwrap_or(self.json);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        DocumentError::Syntax { reason, line, column }
    }

    fn unexpected(&self) -> DocumentError {
        self.error(if self.at < self.json.len() { CHARACTER } else { EARLY })
    }

    fn rest(&self) -> &str {
        self.json.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Value, DocumentError> {
        if depth > DEEPEST {
            return Err(self.error(DEEP));
        }
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ if self.take("null") => Ok(Value::Null),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ if self.take_constant("NaN") => Ok(not_finite(f64::NAN)),
            _ if self.take_constant("Infinity") => Ok(not_finite(f64::INFINITY)),
            _ => Err(self.unexpected()),
        }
    }

    /// Python reads what no JSON has.
    fn take_constant(&mut self, text: &str) -> bool {
        self.library == Library::Python && self.take(text)
    }

    fn array(&mut self, depth: usize) -> Result<Value, DocumentError> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take("]") {
            return Ok(Value::array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if self.take("]") {
                return Ok(Value::array(items));
            }
            if !self.take(",") {
                return Err(self.unexpected());
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, DocumentError> {
        self.at += 1;
        let mut members = Vec::new();
        self.skip_space();
        if self.take("}") {
            return Ok(Value::Object(Arc::new(Members::new(self.library, members))));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected());
            }
            let name = self.string()?;
            self.skip_space();
            if !self.take(":") {
                return Err(self.unexpected());
            }
            members.push((name, self.value(depth + 1)?));
            self.skip_space();
            if self.take("}") {
                return Ok(Value::Object(Arc::new(Members::new(self.library, members))));
            }
            if !self.take(",") {
                return Err(self.unexpected());
            }
        }
    }

    fn string(&mut self) -> Result<Text, DocumentError> {
        self.at += 1;
        let mut units = Vec::new();
        loop {
            let Some(c) = self.rest().chars().next() else { return Err(self.error(EARLY)) };
            match c {
                '"' => {
                    self.at += 1;
                    return Ok(Text::from_units(&units));
                }
                '\\' => {
                    self.at += 1;
                    let unit = self.escape().ok_or_else(|| self.error("an invalid escape"))?;
                    units.push(unit);
                }
                '\0'..'\x20' => return Err(self.error("a control character in a string")),
                c => {
                    self.at += c.len_utf8();
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                }
            }
        }
    }

    fn escape(&mut self) -> Option<u16> {
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

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Result<Value, DocumentError> {
        let start = self.at;
        let negative = self.take("-");
        if negative && self.take_constant("Infinity") {
            return Ok(not_finite(f64::NEG_INFINITY));
        }
        let whole_digits = if self.take("0") { 1 } else { self.digits() };
        if whole_digits == 0 {
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
        let text = self.json.get(start..self.at).unwrap_or("");
        match self.library {
            Library::Python if is_integer && whole_digits > MOST_DIGITS => {
                Err(self.error("an integer of more digits than Python reads"))
            }
            // Python has no negative zero among its integers.
            Library::Python if text == "-0" => Ok(Value::integer("0")),
            Library::Python if is_integer => Ok(Value::integer(text)),
            library => Ok(Value::Number(number(library, text))),
        }
    }
}

fn not_finite(double: f64) -> Value {
    Value::Number(Number { kind: Kind::Double(double), exact: false })
}

/// A numeral as the double next to it, or infinity.
fn number(library: Library, numeral: &str) -> Number {
    let double = numeral.parse::<f64>().unwrap_or(f64::NAN);
    let is_exact = || numeral::Bounds::of(numeral).is_some_and(numeral::Bounds::is_exact);
    let exact = numeral::integer(numeral).is_some() || is_exact();
    // JavaScript has no other integers beside these: the next one may look the same.
    let told_apart = library == Library::Python || double.abs() < EXACT_LIMIT;
    Number { kind: Kind::Double(double), exact: exact && told_apart }
}
