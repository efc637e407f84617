//! Exact decimal numbers of any size, for JSON numerals before they are rounded to a double, and
//! for averages of them, which can be infinite decimals.

use std::cmp::Ordering;

/// The fast parser of `serde_json` reads the few largest doubles as infinity, and its exact parser
/// does not. Which numbers are refused must not depend on the parser that the user's program has.
const LARGEST: f64 = 1.797e308;
/// The most decimal places of a sum, enough for any doubles. Numbers that need more are not added,
/// because a few bytes (`1e-999999999`) can need gigabytes of places.
const MOST_PLACES: i64 = 2048;
/// The number of places that a quotient has more than its dividend. A finite quotient needs fewer,
/// because a divisor is less than 2^64.
const MORE_PLACES: usize = 64;

/// Sign, digits without zeros at either end, and the power of ten of the last digit, divided by
/// `divisor`, which is 1 unless the quotient is an infinite decimal. Equal numbers have equal
/// fields, except for the sign of zero and numbers with a divisor.
#[derive(Clone)]
pub(crate) struct Decimal {
    negative: bool,
    digits: Box<str>,
    power: i64,
    divisor: u64,
}

/// Why there is no exact sum.
#[derive(Debug)]
pub(crate) enum NoSum {
    /// The sum would have too many places.
    Places,
    /// The sum's divisor would be too large.
    Divisor,
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
        Self { negative, digits: significant.into(), power, divisor: 1 }
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
        if self.divisor > 1 {
            return None;
        }
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
        if self.divisor > 1 {
            return self.cut_off().nearest();
        }
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}0.{}e{}", self.digits, self.top()).parse().unwrap_or(f64::NAN)
    }

    /// The power of ten above its first digit.
    fn top(&self) -> i64 {
        self.power.saturating_add(i64::try_from(self.digits.len()).unwrap_or(i64::MAX))
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        if self.divisor != other.divisor {
            return self.times(other.divisor).compare(&other.times(self.divisor));
        }
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

    /// The whole number below it; `None` if that would have too many places.
    pub(crate) fn floor(&self) -> Option<Self> {
        self.whole(self.negative)
    }

    /// The whole number above it; `None` if that would have too many places.
    pub(crate) fn ceil(&self) -> Option<Self> {
        self.whole(!self.negative)
    }

    fn whole(&self, away_from_zero: bool) -> Option<Self> {
        if self.divisor == 1 && self.power >= 0 {
            return Some(self.clone());
        }
        let whole = match usize::try_from(self.top()) {
            Ok(top) if self.divisor == 1 => self.digits.get(..top).unwrap_or("").to_owned(),
            Ok(top) if self.power <= MOST_PLACES => {
                // Its digits up to the point, divided.
                quotient(self.digits.bytes().chain(std::iter::repeat(b'0')).take(top), self.divisor)
                    .0
            }
            Ok(_) => return None,
            Err(_) => String::new(),
        };
        let towards_zero = Self::new(self.negative, &whole, 0);
        if !away_from_zero {
            return Some(towards_zero);
        }
        let one = Self { negative: self.negative, digits: "1".into(), power: 0, divisor: 1 };
        Self::sum(&[towards_zero, one]).ok()
    }

    /// The sum.
    pub(crate) fn sum(terms: &[Self]) -> Result<Self, NoSum> {
        let divisor = terms.iter().try_fold(1_u64, |all, term| {
            (all / common_divisor(all, term.divisor)).checked_mul(term.divisor)
        });
        let divisor = divisor.ok_or(NoSum::Divisor)?;
        if divisor == 1 {
            return Self::sum_of_decimals(terms).ok_or(NoSum::Places);
        }
        let terms: Vec<_> = terms.iter().map(|term| term.times(divisor / term.divisor)).collect();
        Ok(Self::sum_of_decimals(&terms).ok_or(NoSum::Places)?.divided_by(divisor))
    }

    /// The sum of numbers without a divisor.
    fn sum_of_decimals(terms: &[Self]) -> Option<Self> {
        let terms = || terms.iter().filter(|term| !term.digits.is_empty());
        let lowest = terms().map(|term| term.power).min().unwrap_or(0);
        let highest = terms().map(Self::top).max().unwrap_or(0);
        let places = highest.checked_sub(lowest).filter(|places| *places <= MOST_PLACES)?;
        // Room for what is carried: no list has 10^20 items.
        let mut sums = vec![0; usize::try_from(places).ok()? + 20];
        for term in terms() {
            let sign = if term.negative { -1 } else { 1 };
            let above = usize::try_from(term.power - lowest).ok()?;
            for (sum, digit) in sums.iter_mut().skip(above).zip(term.digits.bytes().rev()) {
                *sum += sign * i64::from(digit - b'0');
            }
        }
        let (digits, is_negative) = carried(&sums);
        let digits = if is_negative {
            sums.iter_mut().for_each(|sum| *sum = -*sum);
            carried(&sums).0
        } else {
            digits
        };
        Some(Self::new(is_negative, &digits, lowest))
    }

    /// This sum divided by `count`; `None` if the divisor would be too large.
    pub(crate) fn mean(&self, count: usize) -> Option<Self> {
        let count = u64::try_from(count).ok().filter(|count| *count > 0)?;
        let numerator = Self { divisor: 1, ..self.clone() };
        Some(numerator.divided_by(self.divisor.checked_mul(count)?))
    }

    /// The quotient, as a decimal if it is finite.
    fn divided_by(&self, divisor: u64) -> Self {
        let (ended, rest) = self.divided(divisor);
        if rest == 0 { ended } else { Self { divisor, ..self.clone() } }
    }

    /// The first places of the quotient, and the remainder.
    fn divided(&self, divisor: u64) -> (Self, u128) {
        let dividend = self.digits.bytes().chain(std::iter::repeat_n(b'0', MORE_PLACES));
        let (digits, rest) = quotient(dividend, divisor);
        let more = i64::try_from(MORE_PLACES).unwrap_or(i64::MAX);
        (Self::new(self.negative, &digits, self.power.saturating_sub(more)), rest)
    }

    /// A decimal near the quotient, to find the doubles around it.
    fn cut_off(&self) -> Self {
        self.divided(self.divisor).0
    }

    /// The product of the dividend.
    fn times(&self, factor: u64) -> Self {
        let mut product = Vec::with_capacity(self.digits.len() + 20);
        let mut carry = 0;
        for digit in self.digits.bytes().rev() {
            let total = u128::from(digit - b'0') * u128::from(factor) + carry;
            product.push(total % 10);
            carry = total / 10;
        }
        while carry > 0 {
            product.push(carry % 10);
            carry /= 10;
        }
        let mut digits = String::with_capacity(product.len());
        product.into_iter().rev().for_each(|digit| push_digit(&mut digits, digit));
        Self::new(self.negative, &digits, self.power)
    }
}

/// The integer quotient of these digits, and the remainder.
fn quotient(dividend: impl Iterator<Item = u8>, divisor: u64) -> (String, u128) {
    let divisor = u128::from(divisor).max(1);
    let mut rest = 0;
    let mut digits = String::with_capacity(dividend.size_hint().0);
    for digit in dividend {
        let part = rest * 10 + u128::from(digit - b'0');
        push_digit(&mut digits, part / divisor);
        rest = part % divisor;
    }
    (digits, rest)
}

/// The greatest; neither number is 0.
const fn common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

fn push_digit(digits: &mut String, digit: u128) {
    digits.push(
        u32::try_from(digit).ok().and_then(|digit| char::from_digit(digit, 10)).unwrap_or('0'),
    );
}

/// Carries the sums of the places, last place first, and returns the digits. Also returns whether
/// the number is negative; its digits are then not valid.
fn carried(sums: &[i64]) -> (String, bool) {
    let mut digits = String::with_capacity(sums.len());
    let mut carry = 0;
    for sum in sums {
        let total = sum + carry;
        push_digit(&mut digits, u128::from(total.rem_euclid(10).unsigned_abs()));
        carry = total.div_euclid(10);
    }
    (digits.chars().rev().collect(), carry < 0)
}

#[cfg(test)]
#[path = "decimal_tests.rs"]
mod tests;
