//! Which JSON numerals a double holds exactly enough to be told apart.

/// The numerals of a JSON text in document order: for each, whether it is exact.
///
/// The text must be well-formed JSON: a digit or minus outside a string begins a numeral there.
pub(super) fn exactness(json: &str) -> Vec<bool> {
    let mut numerals = Vec::new();
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (_, token) = rest.split_at(at);
        let end = if token.starts_with('"') { string_end(token) } else { numeral_end(token) };
        let (token, after) = token.split_at(end);
        if !token.starts_with('"') {
            numerals.push(is_exact(token));
        }
        rest = after;
    }
    numerals
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

/// Whether `numeral` names the very value that its nearest double prints as. Of all numerals with
/// one nearest double only one value passes, so two distinct values never look alike.
pub(super) fn is_exact(numeral: &str) -> bool {
    match numeral.parse::<f64>() {
        Ok(double) => decimal(numeral) == decimal(&format!("{double:e}")),
        Err(_) => false,
    }
}

/// Sign, significant digits without zeros at either end, and the power of ten of the last digit.
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
        ] {
            assert!(!is_exact(numeral), "{numeral}");
        }
    }

    #[test]
    fn numerals_are_found_in_order_and_not_in_strings() {
        let json = r#"{"a1":[1.5,"2 \"3\\",-0.1000000000000000055],"b":true,"c":{"d":1e2}}"#;
        assert_eq!(exactness(json), [true, false, true]);
    }
}
