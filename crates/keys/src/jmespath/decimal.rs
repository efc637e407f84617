//! Exact decimal numbers of any size, for JSON numerals before they are rounded to a double.

use std::cmp::Ordering;

/// The fast parser of `serde_json` reads the few largest doubles as infinity, and its exact parser
/// does not. Which numbers are refused must not depend on the parser that the user's program has.
const LARGEST: f64 = 1.797e308;

/// Sign, digits without zeros at either end, and the power of ten of the last digit. Equal numbers
/// have equal fields, except for the sign of zero.
#[derive(Clone)]
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

    /// Its nearest double, if that prints as the same number. Of all numbers with the same nearest
    /// double only one does, so distinct numbers never become equal.
    pub(crate) fn exact(&self) -> Option<f64> {
        let nearest = self.nearest();
        // Distinct numbers with so few digits have distinct doubles in this range.
        let is_short = self.digits.len() <= 15 && (-280..280).contains(&self.power);
        let prints_back = || {
            self.is_in_range() && {
                let printed = Self::of(&format!("{nearest:e}"));
                printed.digits == self.digits && printed.power == self.power
            }
        };
        (is_short || prints_back()).then_some(nearest)
    }

    /// The doubles on either side of it.
    pub(crate) fn neighbours(&self) -> [f64; 2] {
        let nearest = self.nearest();
        [nearest.next_down(), nearest.next_up()]
    }

    fn nearest(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}0.{}e{}", self.digits, self.top()).parse().unwrap_or(f64::NAN)
    }

    /// The power of ten above its first digit.
    fn top(&self) -> i64 {
        self.power.saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX))
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let sign = |number: &Self| match (number.digits.is_empty(), number.negative) {
            (true, _) => 0,
            (false, negative) => {
                if negative {
                    -1
                } else {
                    1
                }
            }
        };
        let size = self.top().cmp(&other.top()).then_with(|| self.digits.cmp(&other.digits));
        sign(self).cmp(&sign(other)).then(match sign(self) {
            0 => Ordering::Equal,
            -1 => size.reverse(),
            _ => size,
        })
    }

    pub(crate) fn abs(&self) -> Self {
        Self { negative: false, ..self.clone() }
    }

    /// The whole number below it.
    pub(crate) fn floor(&self) -> Self {
        self.whole(self.negative)
    }

    /// The whole number above it.
    pub(crate) fn ceil(&self) -> Self {
        self.whole(!self.negative)
    }

    fn whole(&self, away_from_zero: bool) -> Self {
        if self.power >= 0 {
            return self.clone();
        }
        // It has more digits than places before the point.
        let top = usize::try_from(self.top()).unwrap_or(0);
        let whole = self.digits.get(..top).unwrap_or("");
        if away_from_zero {
            Self::new(self.negative, &next_integer(whole), 0)
        } else {
            Self::new(self.negative, whole, 0)
        }
    }
}

/// The digits of the integer after this one.
fn next_integer(digits: &str) -> String {
    let before = digits.trim_end_matches('9');
    let zeros = "0".repeat(digits.len() - before.len());
    let mut before = before.to_owned();
    let last = before.pop().and_then(|last| char::from_u32(u32::from(last) + 1));
    before.push(last.unwrap_or('1'));
    before + &zeros
}

#[cfg(test)]
#[path = "decimal_tests.rs"]
mod tests;
