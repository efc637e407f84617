//! Arithmetic in Python's integers and doubles, and in JavaScript's doubles.

use super::{
    Library, compare,
    value::{Kind, Number, Text, Value},
};

const TOO_LARGE: &str = "it meets integers beyond 128 bits";

pub(super) fn double(number: &Number) -> f64 {
    match &number.kind {
        Kind::Integer(digits) => digits.parse().unwrap_or(f64::NAN),
        Kind::Double(double) => *double,
    }
}

fn integer(number: &Number) -> Option<Result<i128, &'static str>> {
    match &number.kind {
        Kind::Integer(digits) => Some(digits.parse().map_err(|_| TOO_LARGE)),
        Kind::Double(_) => None,
    }
}

/// A length.
pub(super) fn count(library: Library, count: usize) -> Value {
    match library {
        Library::Python => Value::integer(count.to_string()),
        #[allow(clippy::cast_precision_loss, reason = "no list is as long as 2^53")]
        Library::TypeScript => Value::double(count as f64),
    }
}

/// `abs`, `ceil`, `floor`.
pub(super) fn round(
    library: Library,
    function: &str,
    number: &Number,
) -> Result<Value, &'static str> {
    let value = match &number.kind {
        Kind::Integer(digits) if function == "abs" => {
            return Ok(Value::integer(digits.trim_start_matches('-')));
        }
        Kind::Integer(digits) => return Ok(Value::integer(digits.clone())),
        Kind::Double(value) => *value,
    };
    let rounded = match function {
        "abs" => return Ok(Value::double(value.abs())),
        "ceil" => value.ceil(),
        _ => value.floor(),
    };
    match library {
        Library::Python if !value.is_finite() => Err("there is no such integer"),
        Library::Python => Ok(Value::integer(compare::whole(rounded))),
        Library::TypeScript => Ok(Value::double(rounded)),
    }
}

/// Python adds integers exactly until it meets a double; JavaScript has doubles only.
pub(super) fn sum(library: Library, numbers: &[&Number]) -> Result<Value, &'static str> {
    let mut integers = Some(0i128).filter(|_| library == Library::Python);
    let mut doubles = 0.0f64;
    for number in numbers {
        match (integers, integer(number)) {
            (Some(total), Some(term)) => {
                integers = Some(total.checked_add(term?).ok_or(TOO_LARGE)?);
            }
            (Some(total), None) => {
                integers = None;
                doubles = total.to_string().parse::<f64>().unwrap_or(f64::NAN) + double(number);
            }
            (None, _) => doubles += double(number),
        }
    }
    Ok(integers.map_or_else(|| Value::double(doubles), |total| Value::integer(total.to_string())))
}

pub(super) fn average(library: Library, numbers: &[&Number]) -> Result<Value, &'static str> {
    if numbers.is_empty() && library == Library::Python {
        return Ok(Value::Null);
    }
    let Value::Number(total) = sum(library, numbers)? else { return Ok(Value::Null) };
    let exact = match integer(&total) {
        Some(total) => total?.unsigned_abs() <= 1 << 53,
        None => true,
    };
    if !exact {
        return Err("it divides an integer beyond 2^53");
    }
    #[allow(clippy::cast_precision_loss, reason = "no list is as long as 2^53")]
    let count = numbers.len() as f64;
    Ok(Value::double(double(&total) / count))
}

/// `to_number`; the number that a text stands for in the language.
pub(super) fn from_value(library: Library, value: &Value) -> Value {
    match value {
        Value::Number(_) => value.clone(),
        Value::String(text) => from_text(library, text),
        _ => Value::Null,
    }
}

fn from_text(library: Library, text: &Text) -> Value {
    let Some(text) = text.to_str() else { return Value::Null };
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{FEFF}');
    let number = match library {
        Library::Python => python_integer(text).map(Value::integer).or_else(|| {
            let plain = without_underscores(text)?;
            let named = ["inf", "infinity", "nan"]
                .contains(&plain.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str());
            (named || is_decimal(&plain)).then(|| approximate(&plain))?
        }),
        Library::TypeScript => javascript_number(text),
    };
    number.unwrap_or(Value::Null)
}

/// Never exact: other texts give the same.
fn approximate(text: &str) -> Option<Value> {
    let double = text.parse::<f64>().ok()?;
    Some(Value::Number(Number { kind: Kind::Double(double), exact: false }))
}

/// Digits, maybe with a sign, and with single underscores between them.
fn python_integer(text: &str) -> Option<String> {
    let plain = without_underscores(text)?;
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", plain.strip_prefix('+').unwrap_or(&plain)),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
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
fn javascript_number(text: &str) -> Option<Value> {
    if text.is_empty() {
        return approximate("0");
    }
    for (prefixes, radix) in [(["0x", "0X"], 16), (["0o", "0O"], 8), (["0b", "0B"], 2)] {
        let digits = prefixes.iter().find_map(|prefix| text.strip_prefix(prefix));
        if let Some(digits) = digits {
            let digit = |c: char| c.is_digit(radix);
            let whole = digits.chars().all(digit).then(|| u64::from_str_radix(digits, radix).ok());
            return approximate(&whole.flatten()?.to_string());
        }
    }
    if matches!(text, "Infinity" | "+Infinity" | "-Infinity") || is_decimal(text) {
        return approximate(text);
    }
    None
}
