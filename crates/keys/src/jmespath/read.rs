//! JSON text: as `json.loads` and `JSON.parse` read it, to the last digit; in the standard without what
//! two readers may read differently, and as far as it is wanted.

use std::sync::Arc;

use super::{
    Variant,
    decimal::Decimal,
    value::{Kind, Members, Number, Text, Value},
};
use crate::{DocumentError, document::MOST_BYTES, reads::Wanted};

/// As deep as documents may be, for the libraries; and less by two in the standard, as `serde_json`
/// has it.
const DEEPEST: usize = 128;
/// More digits than Python reads as an integer.
/// <https://docs.python.org/3/library/stdtypes.html#integer-string-conversion-length-limitation>
pub(crate) const MOST_DIGITS: usize = 4300;
/// From here on, neighbouring integers share a double.
pub(crate) const EXACT_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Whether the library reads further than we do.
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

/// Reads what is wanted of a text. The rest must only look like JSON.
pub(crate) fn read_wanted(
    variant: Variant,
    json: &str,
    wanted: &Wanted,
) -> Result<Value, DocumentError> {
    if json.len() > MOST_BYTES {
        return Err(DocumentError::TooLong { bytes: json.len() });
    }
    let mut reader = Reader { variant, json, at: 0 };
    let value = reader.value(wanted, 0)?;
    reader.skip_space();
    if reader.at < json.len() { Err(reader.error(CHARACTER)) } else { Ok(value) }
}

const DEEP: &str = "too deep a nesting";
const EARLY: &str = "it ends too early";
const CHARACTER: &str = "a character that cannot stand there";
const ESCAPE: &str = "an invalid escape";
const TOO_LARGE: &str = "a number that is larger than any double";
const TOO_SMALL: &str = "a number with an exponent beyond 4 * 10^18; send it as a string";

struct Reader<'a> {
    variant: Variant,
    json: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn is_standard(&self) -> bool {
        self.variant == Variant::Standard
    }

    /// Line and column, from 1.
    fn place(&self) -> (usize, usize) {
        let before = self.json.get(..self.at).unwrap_or(self.json);
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        (before.matches('\n').count() + 1, column + 1)
    }

    fn error(&self, reason: &'static str) -> DocumentError {
        let (line, column) = self.place();
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
            // Where only members are wanted, it is enough that it is no object.
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

    /// Passes over a value, at no cost of stack, however deep.
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

    /// Python reads what no JSON has.
    fn take_constant(&mut self, text: &str) -> bool {
        self.variant == Variant::Python && self.take(text)
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
            let name = self.string()?;
            self.skip_space();
            if !self.take(":") {
                return Err(self.unexpected());
            }
            let inside = match wanted {
                Wanted::All => Some(wanted),
                Wanted::Members(members) => name.to_str().and_then(|name| members.get(name)),
            };
            match inside {
                Some(inside) => members.push((name, self.value(inside, depth + 1)?)),
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
            let (line, column) = self.place();
            return Err(DocumentError::DuplicateMember { line, column });
        }
        Ok(Value::Object(Arc::new(members)))
    }

    /// Passes over what stands for itself in a string.
    fn plain(&mut self) -> &'a str {
        let rest = self.json.get(self.at..).unwrap_or("");
        let special = |byte: u8| matches!(byte, b'"' | b'\\' | 0..0x20);
        let length = rest.bytes().position(special).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or("")
    }

    /// Passes over an escape, which is a unit of UTF-16; `None` at the end of the string.
    fn special(&mut self) -> Result<Option<u16>, DocumentError> {
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

    fn string(&mut self) -> Result<Text, DocumentError> {
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
        if self.variant == Variant::Python && self.take("-Infinity") {
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
                Value::decimal(decimal)
            }
            Variant::Python if is_integer && text.trim_start_matches('-').len() > MOST_DIGITS => {
                return Err(self.error("an integer of more digits than Python reads"));
            }
            // Python has no negative zero among its integers.
            Variant::Python if text == "-0" => Value::integer("0"),
            Variant::Python if is_integer => Value::integer(text),
            variant => Value::Number(number(variant, text)),
        })
    }

    /// A numeral, and whether it is one of an integer.
    fn numeral(&mut self) -> Result<(&'a str, bool), DocumentError> {
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
}

fn not_finite(double: f64) -> Value {
    Value::Number(Number { kind: Kind::Double(double), exact: false })
}

/// An integer. `-0` is a double, whose sign counts.
fn is_64_bits(numeral: &str) -> bool {
    numeral != "-0" && (numeral.parse::<u64>().is_ok() || numeral.parse::<i64>().is_ok())
}

/// A numeral as the double next to it, or infinity.
fn number(variant: Variant, numeral: &str) -> Number {
    let double = numeral.parse::<f64>().unwrap_or(f64::NAN);
    let exact = is_64_bits(numeral) || Decimal::of(numeral).exact().is_some();
    // JavaScript has no other integers beside these: the next one may look the same.
    let told_apart = variant == Variant::Python || double.abs() < EXACT_LIMIT;
    Number { kind: Kind::Double(double), exact: exact && told_apart }
}
