//! Which JSON numerals a double holds exactly enough to be told apart.
//!
//! The doubles are taken from the text, and not from `serde_json`, whose last digit depends on its
//! feature `float_roundtrip`.

/// `serde_json`'s quick reader takes the last few doubles for infinity, its exact one does not: what
/// is refused must not depend on which of them the user's program has.
const LARGEST: f64 = 1.797e308;

/// From which side a number that no double holds exactly is read; see [`Bounds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Below,
    Above,
}

/// A numeral between the doubles next to it; both are the same if that is exact.
///
/// Whatever comes out the same for both does not depend on the digits that a double cannot hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    below: f64,
    above: f64,
}

impl Bounds {
    /// `None` if the numeral is about as large as the largest double, or larger.
    pub(super) fn of(numeral: &str) -> Option<Self> {
        let nearest = numeral.parse::<f64>().ok().filter(|double| double.abs() <= LARGEST)?;
        if is_short(numeral) || decimal(numeral) == decimal(&format!("{nearest:e}")) {
            return Some(Self { below: nearest, above: nearest });
        }
        Some(Self { below: nearest.next_down(), above: nearest.next_up() })
    }

    pub(super) const fn is_exact(self) -> bool {
        self.below.to_bits() == self.above.to_bits()
    }

    pub(super) const fn on(self, side: Side) -> f64 {
        match side {
            Side::Below => self.below,
            Side::Above => self.above,
        }
    }
}

/// The integer that a numeral is, if 64 bits hold it.
pub(super) fn integer(numeral: &str) -> Option<serde_json::Number> {
    match (numeral.parse::<u64>(), numeral.parse::<i64>()) {
        // `serde_json` reads it as a double, whose sign counts.
        _ if numeral == "-0" => None,
        (Ok(integer), _) => Some(integer.into()),
        (_, Ok(integer)) => Some(integer.into()),
        _ => None,
    }
}

/// Finds the numerals of a JSON text, in order, from where it stands.
///
/// The text must be well-formed JSON: a digit or minus outside a string begins a numeral there.
pub(super) struct Scanner<'j> {
    rest: &'j str,
    /// How many numerals are behind.
    passed: usize,
}

impl<'j> Scanner<'j> {
    pub(super) const fn new(rest: &'j str, passed: usize) -> Self {
        Self { rest, passed }
    }

    /// The numeral with that number, which must not be behind.
    pub(super) fn nth(&mut self, number: usize) -> Option<&'j str> {
        loop {
            let begins = |c: char| c == '"' || c == '-' || c.is_ascii_digit();
            let (_, token) = self.rest.split_at(self.rest.find(begins)?);
            let is_string = token.starts_with('"');
            let end = if is_string { string_end(token) } else { numeral_end(token) };
            let (token, after) = token.split_at(end);
            self.rest = after;
            if !is_string {
                self.passed += 1;
                if self.passed > number {
                    return Some(token);
                }
            }
        }
    }
}

fn string_end(token: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in token.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    token.len()
}

fn numeral_end(token: &str) -> usize {
    let part_of = |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
    token.find(|c| !part_of(c)).unwrap_or(token.len())
}

/// At most 15 digits and no exponent: no two such numerals of different value share a double.
fn is_short(numeral: &str) -> bool {
    numeral.len() <= 15 && !numeral.contains(['e', 'E'])
}

/// Sign, significant digits without zeros at either end, and the power of ten of the last digit.
///
/// A numeral is exact if its nearest double prints as the same: of all numerals with one nearest
/// double only one value passes, so two distinct values never look alike.
fn decimal(numeral: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = match numeral.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (numeral, 0),
    };
    let (negative, mantissa) =
        mantissa.strip_prefix('-').map_or((false, mantissa), |digits| (true, digits));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((negative, String::new(), 0));
    }
    let trailing = digits.len() - digits.trim_end_matches('0').len();
    let power = exponent
        .checked_sub(i64::try_from(fraction.len()).ok()?)?
        .checked_add(i64::try_from(trailing).ok()?)?;
    Some((negative, significant.to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_exact(numeral: &str) -> bool {
        Bounds::of(numeral).is_some_and(Bounds::is_exact)
    }

    #[test]
    fn what_prints_back_is_exact() {
        for numeral in ["0", "-0", "0.1", "0.10", "1e3", "1E+3", "1.5e-7", "123.456", "100", "1e22"]
        {
            assert!(is_exact(numeral), "{numeral}");
        }
    }

    #[test]
    fn what_shares_its_double_with_another_value_is_not() {
        for numeral in [
            "9007199254740993.0",
            "0.1000000000000000055",
            "18446744073709551617",
            "1e999",
            "1e-999",
            "1.7969999999999999999e308",
        ] {
            assert!(!is_exact(numeral), "{numeral}");
        }
    }

    #[test]
    fn numerals_are_found_in_order_and_not_in_strings() {
        let json = r#"{"a1":[1.5,"2 \"3\\",-0.1000000000000000055],"b":true,"c":{"d":1e2}}"#;
        let numerals = ["1.5", "-0.1000000000000000055", "1e2"];
        let mut scanner = Scanner::new(json, 0);
        for (number, numeral) in numerals.into_iter().enumerate() {
            assert_eq!(scanner.nth(number), Some(numeral));
        }
        assert_eq!(scanner.nth(3), None);
        assert_eq!(Scanner::new(json, 0).nth(2), Some("1e2"));
        assert_eq!(Scanner::new("2e0]", 7).nth(7), Some("2e0"));
    }

    #[test]
    fn what_is_short_prints_back() {
        for numeral in
            ["0.0000000000001", "123456789.12345", "-99999999999.99", "0.3", "-0", "-0.0"]
        {
            assert!(is_short(numeral));
            let nearest: f64 = numeral.parse().unwrap();
            assert_eq!(decimal(numeral), decimal(&format!("{nearest:e}")), "{numeral}");
        }
    }

    #[test]
    fn what_is_not_exact_lies_between_two_doubles_that_differ() {
        for numeral in ["9007199254740993.0", "0.1000000000000000055", "1e-999", "-1e-999"] {
            let bounds = Bounds::of(numeral).unwrap();
            assert!(bounds.on(Side::Below) < bounds.on(Side::Above), "{numeral}");
        }
        for numeral in ["1.7976931348623157e308", "-1.7976931348623157e308", "1e999"] {
            assert_eq!(Bounds::of(numeral), None, "{numeral}");
        }
    }
}
