//! Arithmetic: exact rounding in the standard variant, which does not add; integers and doubles in
//! Python; doubles in JavaScript.

use super::{
    Collision, Collisions, Variant, compare,
    read::{MOST_DIGITS, read},
    text::Text,
    value::{Kind, Number, Value},
};

const TOO_LARGE: &str = "it meets integers beyond 128 bits";

pub(crate) fn double(number: &Number) -> f64 {
    match &number.kind {
        Kind::Integer(digits) => digits.parse().unwrap_or(f64::NAN),
        Kind::Decimal(decimal) => decimal.exact().unwrap_or(f64::NAN),
        Kind::Double(double) => *double,
    }
}

fn integer(number: &Number) -> Option<Result<i128, &'static str>> {
    match &number.kind {
        Kind::Integer(digits) => Some(digits.parse().map_err(|_| TOO_LARGE)),
        Kind::Decimal(_) | Kind::Double(_) => None,
    }
}

/// A length.
pub(crate) fn count(variant: Variant, count: usize) -> Value {
    match variant {
        Variant::Standard | Variant::Python(_) => Value::integer(count.to_string()),
        #[allow(clippy::cast_precision_loss, reason = "no list is as long as 2^53")]
        Variant::TypeScript(_) => Value::double(count as f64),
    }
}

/// `abs`, `ceil`, `floor`.
pub(crate) fn round(
    variant: Variant,
    function: &str,
    number: &Number,
) -> Result<Value, &'static str> {
    if variant == Variant::Standard {
        let decimal = compare::decimal(number);
        return Ok(Value::decimal(match function {
            "abs" => decimal.abs(),
            "ceil" => decimal.ceil(),
            _ => decimal.floor(),
        }));
    }
    let value = match &number.kind {
        Kind::Integer(digits) if function == "abs" => {
            return Ok(Value::integer(digits.trim_start_matches('-')));
        }
        Kind::Integer(digits) => return Ok(Value::integer(digits.clone())),
        Kind::Decimal(_) | Kind::Double(_) => double(number),
    };
    let rounded = match function {
        "abs" => return Ok(Value::double(value.abs())),
        "ceil" => value.ceil(),
        _ => value.floor(),
    };
    match variant {
        Variant::Python(_) if !value.is_finite() => Err("there is no such integer"),
        Variant::Python(_) => Ok(Value::integer(compare::whole(rounded))),
        Variant::Standard | Variant::TypeScript(_) => Ok(Value::double(rounded)),
    }
}

/// Python adds integers exactly until it meets a double; JavaScript has doubles only.
///
/// Since 3.12, Python compensates for the rounding of doubles
/// (<https://docs.python.org/3/library/functions.html#sum>). The sum is that of the versions
/// before; where it is another one it is a loss.
pub(crate) fn sum(
    variant: Variant,
    numbers: &[&Number],
    collisions: &Collisions,
) -> Result<Value, &'static str> {
    let mut integers = Some(0i128).filter(|_| variant.is_python());
    let (mut doubles, mut since) = (0.0, Compensated::default());
    for number in numbers {
        match (integers, integer(number)) {
            (Some(total), Some(term)) => {
                integers = Some(total.checked_add(term?).ok_or(TOO_LARGE)?);
            }
            (Some(total), None) => {
                integers = None;
                doubles = total.to_string().parse::<f64>().unwrap_or(f64::NAN) + double(number);
                since.total = doubles;
            }
            (None, term) => {
                doubles += double(number);
                if term.is_some() {
                    since.total += double(number);
                } else {
                    since.add(double(number));
                }
            }
        }
    }
    if let Some(total) = integers {
        return Ok(Value::integer(total.to_string()));
    }
    if variant.is_python() && since.sum().to_bits() != doubles.to_bits() {
        collisions.note(Collision::Addition);
    }
    Ok(Value::double(doubles))
}

/// Neumaier's compensated sum, which keeps the rounding errors of its total.
#[derive(Default)]
struct Compensated {
    total: f64,
    rest: f64,
}

impl Compensated {
    fn add(&mut self, term: f64) {
        let sum = self.total + term;
        self.rest += if self.total.abs() >= term.abs() {
            (self.total - sum) + term
        } else {
            (term - sum) + self.total
        };
        self.total = sum;
    }

    fn sum(&self) -> f64 {
        if self.rest.is_finite() { self.total + self.rest } else { self.total }
    }
}

pub(crate) fn average(
    variant: Variant,
    numbers: &[&Number],
    collisions: &Collisions,
) -> Result<Value, &'static str> {
    if numbers.is_empty() && !variant.is_typescript() {
        return Ok(Value::Null);
    }
    let Value::Number(total) = sum(variant, numbers, collisions)? else { return Ok(Value::Null) };
    if let Some(total) = integer(&total) {
        return Ok(Value::double(quotient(total?, numbers.len()).ok_or(TOO_LARGE)?));
    }
    #[allow(clippy::cast_precision_loss, reason = "no list is as long as 2^53")]
    let count = numbers.len() as f64;
    Ok(Value::double(double(&total) / count))
}

/// The double next to the quotient of two integers, as Python divides them.
fn quotient(total: i128, count: usize) -> Option<f64> {
    /// More digits than a double has, so that the digits after them only decide a tie.
    const ENOUGH: u128 = 1 << 56;
    let count = u128::try_from(count).ok().filter(|count| *count < 1 << 60)?;
    let mut dividend = total.unsigned_abs();
    let mut scale = 0i32;
    while dividend > 0 && dividend / count < ENOUGH {
        dividend <<= 1;
        scale += 1;
    }
    let sticky = u128::from(!dividend.is_multiple_of(count));
    #[allow(clippy::cast_precision_loss, reason = "rounded once, here")]
    let nearest = ((dividend / count) | sticky) as f64;
    let quotient = nearest / 2f64.powi(scale);
    Some(if total < 0 { -quotient } else { quotient })
}

/// `to_number`: the number that the language parses from a text, or `null`.
pub(crate) fn from_text(variant: Variant, text: &Text) -> Result<Value, &'static str> {
    let Some(text) = text.to_str() else { return Ok(Value::Null) };
    Ok(match variant {
        Variant::Standard => read(variant, text).ok().filter(|v| matches!(v, Value::Number(_))),
        Variant::Python(_) => python_number(text.trim())?,
        Variant::TypeScript(_) => javascript_number(text)?,
    }
    .unwrap_or(Value::Null))
}

/// The characters that `trim()` removes: <https://tc39.es/ecma262/#prod-WhiteSpace>
pub(crate) fn is_javascript_space(c: char) -> bool {
    (c.is_whitespace() && c != '\u{85}') || c == '\u{FEFF}'
}

fn python_number(text: &str) -> Result<Option<Value>, &'static str> {
    if text.chars().any(|c| !c.is_ascii() && c.is_numeric()) {
        return Err("it meets digits of another script");
    }
    let Some(plain) = without_underscores(text) else { return Ok(None) };
    if let Some(digits) = python_integer(&plain) {
        return Ok(Some(Value::integer(digits)));
    }
    let unsigned = plain.strip_prefix(['+', '-']).unwrap_or(&plain).to_ascii_lowercase();
    let named = matches!(&*unsigned, "inf" | "infinity" | "nan");
    Ok((named || is_decimal(&plain)).then(|| approximate(&plain)).flatten())
}

/// Never exact, because other texts have the same value.
fn approximate(text: &str) -> Option<Value> {
    let double = text.parse::<f64>().ok()?;
    Some(Value::Number(Number { kind: Kind::Double(double), exact: false }))
}

/// Digits with an optional sign, at most as many as Python reads.
fn python_integer(plain: &str) -> Option<String> {
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.strip_prefix('+').unwrap_or(plain)),
    };
    let is_integer = (1..=MOST_DIGITS).contains(&digits.len());
    if !is_integer || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}") })
}

fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let misplaced = |(at, b): (usize, &u8)| {
        *b == b'_' && !(digit(at.checked_sub(1)) && digit(at.checked_add(1)))
    };
    if bytes.iter().enumerate().any(misplaced) { None } else { Some(text.replace('_', "")) }
}

/// `[+-] digits [. digits] [e [+-] digits]`, with digits on at least one side of the point.
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

/// <https://tc39.es/ecma262/#sec-stringtonumber>
pub(crate) fn javascript_number(text: &str) -> Result<Option<Value>, &'static str> {
    let text = text.trim_matches(is_javascript_space);
    if text.is_empty() {
        return Ok(approximate("0"));
    }
    for (prefixes, radix) in [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)] {
        let digits = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
        if let Some(digits) = digits {
            if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
                return Ok(None);
            }
            let whole = u128::from_str_radix(digits, radix).map_err(|_| TOO_LARGE)?;
            return Ok(approximate(&whole.to_string()));
        }
    }
    let named = matches!(text, "Infinity" | "+Infinity" | "-Infinity");
    Ok((named || is_decimal(text)).then(|| approximate(text)).flatten())
}
