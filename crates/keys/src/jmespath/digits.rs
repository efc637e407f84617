//! Doubles as text. Python and JavaScript both write the shortest digits that are parsed as the
//! same double; of several, the closest, and of equally close ones the even. They differ in where
//! they put the point.

/// The sign, the shortest digits, and the power of ten of the first of them. `double` is finite.
struct Decimal {
    negative: bool,
    digits: String,
    power: i32,
}

impl Decimal {
    fn of(double: f64) -> Self {
        let shortest = format!("{double:e}");
        let count = shortest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
        // The same number of digits, but a tie is rounded to even; Rust's shortest form rounds up.
        let even = format!("{double:.*e}", count.saturating_sub(1));
        let text = if even.parse() == Ok(double) { even } else { shortest };
        let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
        let negative = mantissa.starts_with('-');
        let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
        Self { negative, digits, power: power.parse().unwrap_or(0) }
    }

    /// Digits without an exponent, with a point only if digits follow it.
    fn plain(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let before = usize::try_from(self.power.saturating_add(1)).unwrap_or(0);
        if self.power < 0 {
            let zeros = "0".repeat(self.power.unsigned_abs() as usize - 1);
            return format!("{sign}0.{zeros}{}", self.digits);
        }
        match self.digits.split_at_checked(before) {
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{:0<before$}", self.digits),
        }
    }

    /// Digits with a signed exponent of at least `width` digits.
    fn scientific(&self, width: usize) -> String {
        let sign = if self.negative { "-" } else { "" };
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or(("0", ""));
        let point = if rest.is_empty() { "" } else { "." };
        let power_sign = if self.power < 0 { '-' } else { '+' };
        let power = self.power.unsigned_abs();
        format!("{sign}{first}{point}{rest}e{power_sign}{power:0width$}")
    }
}

/// `repr(float)`, and what `json.dumps` writes for infinities and NaN.
pub(crate) fn python(double: f64) -> String {
    if double.is_nan() {
        return "NaN".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let decimal = Decimal::of(double);
    if !(-4..16).contains(&decimal.power) {
        return decimal.scientific(2);
    }
    let plain = decimal.plain();
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// `JSON.stringify(number)`: <https://tc39.es/ecma262/#sec-numeric-types-number-tostring>.
pub(crate) fn javascript(double: f64) -> String {
    if !double.is_finite() {
        return "null".to_owned();
    }
    if double == 0.0 {
        return "0".to_owned();
    }
    let decimal = Decimal::of(double);
    if (-6..21).contains(&decimal.power) { decimal.plain() } else { decimal.scientific(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_each_language_writes_them() {
        for (double, expected_python, expected_javascript) in [
            (0.0, "0.0", "0"),
            (-0.0, "-0.0", "0"),
            (1.0, "1.0", "1"),
            (-1.5, "-1.5", "-1.5"),
            (123.456, "123.456", "123.456"),
            (1e15, "1000000000000000.0", "1000000000000000"),
            (1e16, "1e+16", "10000000000000000"),
            (1.5e16, "1.5e+16", "15000000000000000"),
            (1e20, "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (1.25e100, "1.25e+100", "1.25e+100"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "0.00001"),
            (1.5e-7, "1.5e-07", "1.5e-7"),
            (0.000_001_5, "1.5e-06", "0.0000015"),
            (-2_046_054_888_268_255.2, "-2046054888268255.2", "-2046054888268255.2"),
            (5e-324, "5e-324", "5e-324"),
            (f64::MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"),
            (f64::INFINITY, "Infinity", "null"),
            (f64::NEG_INFINITY, "-Infinity", "null"),
            (f64::NAN, "NaN", "null"),
        ] {
            assert_eq!(python(double), expected_python);
            assert_eq!(javascript(double), expected_javascript);
        }
    }
}
