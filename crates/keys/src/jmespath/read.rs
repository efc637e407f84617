//! Parses JSON text, in the library variants exactly as `json.loads` and `JSON.parse` do. The
//! standard variant refuses text that parsers read differently, and can parse only the fields that
//! are wanted.

use std::sync::Arc;

use super::{
    ast::Wanted,
    decimal::Decimal,
    scan::{CHARACTER, DocumentError, Reader},
    value::{Kind, MOST_BYTES, Members, Number, Value, Variant},
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
