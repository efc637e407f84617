//! Exact decimal numbers of any size, for JSON numerals before they are rounded to a double.

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
        let exponent = exponent.parse().unwrap_or(largest);
        let (negative, mantissa) =
            mantissa.strip_prefix('-').map_or((false, mantissa), |digits| (true, digits));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
        Self::new(negative, &format!("{whole}{fraction}"), exponent.saturating_sub(places))
    }

    fn new(negative: bool, digits: &str, power: i64) -> Self {
        let digits = digits.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        let zeros = i64::try_from(digits.len() - significant.len()).unwrap_or(i64::MAX);
        let power = if significant.is_empty() { 0 } else { power.saturating_add(zeros) };
        Self { negative, digits: significant.into(), power }
    }

    /// Whether its exponent was read exactly, so that distinct numbers stay distinct.
    pub(crate) const fn has_exact_exponent(&self) -> bool {
        self.power.unsigned_abs() < 1 << 62
    }

    /// Whether it is in the range of doubles.
    pub(crate) fn is_in_range(&self) -> bool {
        self.nearest().abs() <= LARGEST
    }

    /// Whether its nearest double prints as the same number. Of all numbers with the same nearest double only one does, so
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
        let sign = if self.negative { "-" } else { "" };
        // The power of ten above its first digit.
        let top = self.power.saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX));
        format!("{sign}0.{}e{top}", self.digits).parse().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
#[path = "decimal_tests.rs"]
mod tests;
