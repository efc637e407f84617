//! Decimal numbers of any size: JSON numerals before they are rounded to a double, and doubles as text.
//!
//! Python and JavaScript both write the shortest digits that are parsed as the same double; of several, the closest, and
//! of equally close ones the even. They differ in where they put the point.

/// The fast parser of `serde_json` reads the few largest doubles as infinity, and its exact parser
/// does not. Which numbers are refused must not depend on the parser that the user's program has.
const LARGEST: f64 = 1.797e308;

/// Sign, digits without zeros at either end, and the power of ten of the last digit. Equal numbers
/// have equal fields, except for the sign of zero.
pub(crate) struct Decimal {
    negative: bool,
    digits: Box<str>,
    power: i64,
}

impl Decimal {
    /// The number that a JSON numeral stands for. An exponent beyond 64 bits counts as the largest:
    /// [it is not exact](Self::has_exact_exponent).
    pub(crate) fn of(numeral: &str) -> Self {
        let (mantissa, exponent) = numeral.split_once(['e', 'E']).unwrap_or((numeral, "0"));
        let largest = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let exponent: i64 = exponent.parse().unwrap_or(largest);
        let (negative, mantissa) =
            mantissa.strip_prefix('-').map_or((false, mantissa), |digits| (true, digits));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        let zeros = length(digits) - length(significant) - length(fraction);
        let power = if significant.is_empty() { 0 } else { exponent.saturating_add(zeros) };
        Self { negative, digits: significant.into(), power }
    }

    /// The shortest digits of a finite double.
    fn shortest(double: f64) -> Self {
        let shortest = format!("{double:e}");
        let count = shortest.bytes().take_while(|b| *b != b'e').filter(u8::is_ascii_digit).count();
        // The same number of digits, but a tie is rounded to even; Rust's shortest form rounds up.
        let even = format!("{double:.*e}", count.saturating_sub(1));
        Self::of(if even.parse() == Ok(double) { &even } else { &shortest })
    }

    /// Whether its exponent was read exactly, so that distinct numbers stay distinct.
    pub(crate) const fn has_exact_exponent(&self) -> bool {
        self.power.unsigned_abs() < 1 << 62
    }

    /// Whether it is in the range of doubles.
    pub(crate) fn is_in_range(&self) -> bool {
        self.nearest().abs() <= LARGEST
    }

    /// Whether its nearest double prints as the same number. Only one of all numbers with the same nearest double does, so
    /// distinct numbers never become equal.
    pub(crate) fn is_exact(&self) -> bool {
        let nearest = self.nearest();
        // Distinct numbers with so few digits have distinct doubles in this range.
        let is_short = self.digits.len() <= 15 && (-280..280).contains(&self.power);
        let prints_back = || {
            self.is_in_range() && {
                let printed = Self::of(&format!("{nearest:e}"));
                printed.digits == self.digits && printed.power == self.power
            }
        };
        is_short || prints_back()
    }

    pub(crate) fn nearest(&self) -> f64 {
        let top = self.power.saturating_add(length(&self.digits));
        format!("{}0.{}e{top}", self.sign(), self.digits).parse().unwrap_or(f64::NAN)
    }

    const fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// The power of ten of its first digit.
    fn first(&self) -> i64 {
        if self.digits.is_empty() { 0 } else { self.power.saturating_add(length(&self.digits)) - 1 }
    }

    /// Digits without an exponent, with a point only if digits follow it.
    fn plain(&self) -> String {
        let sign = self.sign();
        let before = usize::try_from(self.first().saturating_add(1)).unwrap_or(0);
        if before == 0 {
            let zeros = usize::try_from(-1 - self.first()).unwrap_or(0);
            return format!("{sign}0.{}{}", "0".repeat(zeros), self.digits);
        }
        match self.digits.split_at_checked(before) {
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{:0<before$}", self.digits),
        }
    }

    /// Digits with a signed exponent of at least `width` digits.
    fn scientific(&self, width: usize) -> String {
        let (first, rest) = self.digits.split_at_checked(1).unwrap_or(("0", ""));
        let point = if rest.is_empty() { "" } else { "." };
        let power_sign = if self.first() < 0 { '-' } else { '+' };
        let power = self.first().unsigned_abs();
        format!("{}{first}{point}{rest}e{power_sign}{power:0width$}", self.sign())
    }
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// `repr(float)`, and what `json.dumps` writes for infinities and NaN.
pub(crate) fn python(double: f64) -> String {
    if double.is_nan() {
        return "NaN".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let decimal = Decimal::shortest(double);
    if !(-4..16).contains(&decimal.first()) {
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
    let decimal = Decimal::shortest(double);
    if (-6..21).contains(&decimal.first()) { decimal.plain() } else { decimal.scientific(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_exact(numeral: &str) -> bool {
        Decimal::of(numeral).is_exact()
    }

    fn shown(number: &Decimal) -> String {
        format!("{}{}e{}", number.sign(), number.digits, number.power)
    }

    #[test]
    fn a_number_that_prints_as_it_was_read_is_exact() {
        for numeral in ["0", "-0", "0.1", "0.10", "1e3", "1E+3", "1.5e-7", "123.456", "100", "1e22"]
        {
            assert!(is_exact(numeral), "{numeral}");
        }
    }

    #[test]
    fn a_number_that_shares_its_double_with_another_is_not_exact() {
        for numeral in [
            "9007199254740993.0",
            "0.1000000000000000055",
            "18446744073709551617",
            "1e999",
            "1e-999",
            "1.7969999999999999999e308",
            "1e-99999999999999999999",
        ] {
            assert!(!is_exact(numeral), "{numeral}");
        }
    }

    #[test]
    fn short_numbers_are_exact() {
        for numeral in ["0.0000000000001", "123456789.12345", "-99999999999.99", "1e-270", "1e280"]
        {
            assert!(is_exact(numeral), "{numeral}");
            let nearest = Decimal::of(numeral).nearest();
            assert_eq!(numeral.parse(), Ok(nearest));
            let printed = Decimal::of(&format!("{nearest:e}"));
            assert_eq!(shown(&Decimal::of(numeral)), shown(&printed), "{numeral}");
        }
    }

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
