//! Distinct numbers never have equal keys, and numbers that cannot be distinguished are refused.

use lambda_idempotency_keys::{Document, SelectionError};
use proptest::prelude::*;

use crate::support::{cases, selected};

/// Numerals of all forms, many of them close to each other.
fn numeral() -> impl Strategy<Value = String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,20})",
        "-?(0|[1-9][0-9]{0,2})\\.[0-9]{1,20}",
        "-?(0|[1-9][0-9]{0,2})(\\.[0-9]{1,3})?[eE][+-]?[0-9]{1,2}",
        "-?0\\.1000000000000000[0-9]{1,4}",
        "900719925474099[0-9](\\.[0-9])?",
        "1844674407370955[0-9]{4}",
        any::<f64>()
            // Also not infinite; a larger one is refused, which `bounds` tests.
            .prop_filter("documents have no such number", |d| d.abs() <= 1.797e308)
            .prop_map(|d| format!("{d:e}")),
        (0.0..1e6).prop_map(|d: f64| d.to_string()),
    ]
}

/// Sign, digits and power of ten, without leading and trailing zeros: they are equal if and only if
/// the values are.
fn value(numeral: &str) -> (bool, String, i64) {
    let lower = numeral.to_lowercase();
    let (mantissa, exponent) = lower.split_once('e').unwrap_or((&lower, "0"));
    let negative = mantissa.starts_with('-');
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    let mut power = exponent.parse::<i64>().unwrap() - fraction.len() as i64;
    while digits.len() > 1 && digits.ends_with('0') {
        digits.pop();
        power += 1;
    }
    let digits = digits.trim_start_matches('0').to_owned();
    if digits.is_empty() {
        power = 0;
    }
    (negative, digits, power)
}

/// `1` and `1.0` have distinct keys although their values are equal, because producers in other
/// languages distinguish them.
fn is_integer(numeral: &str) -> bool {
    !numeral.contains(['.', 'e', 'E']) && numeral != "-0"
}

fn nearest(numeral: &str) -> f64 {
    numeral.parse().unwrap()
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn different_numbers_have_different_keys((one, other) in (numeral(), numeral())) {
        let (Ok(a), Ok(b)) = (selected("@", &one), selected("@", &other)) else { return Ok(()) };
        let same = value(&one) == value(&other) && is_integer(&one) == is_integer(&other);
        prop_assert_eq!(a == b, same, "{} and {}", one, other);
    }

    /// All digits of a double are read correctly, with each number parser of `serde_json`.
    #[test]
    fn doubles_are_read_to_the_last_digit(double in any::<f64>()) {
        prop_assume!(double.is_finite() && double.abs() < 9e15);
        let numeral = format!("{double:e}");
        prop_assert_eq!(selected("@", &numeral).unwrap(), numeral);
    }

    #[test]
    fn integers_of_64_bits_are_kept_unchanged(value in crate::json::integer()) {
        prop_assert_eq!(selected("@", &value.to_string()).unwrap(), value.to_string());
    }

    /// A number that is accepted is exactly the number that was written; others are refused as
    /// inexact.
    #[test]
    fn accepted_numbers_are_exact(numeral in numeral()) {
        match selected("@", &numeral) {
            Ok(canonical) => prop_assert_eq!(value(&canonical), value(&numeral)),
            Err(error) => prop_assert_eq!(error, SelectionError::InexactNumber),
        }
    }

    /// An expression does not make an inexact number acceptable.
    #[test]
    fn no_expression_hides_the_digits(numeral in "0\\.1000000000000000[0-9]{2,4}") {
        prop_assume!(value(&numeral) != value(&format!("{:e}", nearest(&numeral))));
        let json = format!("{{\"n\":{numeral},\"id\":\"a\"}}");
        for expression in ["n", "[id, n]", "@", "{x: n}", "not_null(n, id)"] {
            prop_assert_eq!(
                selected(expression, &json), Err(SelectionError::InexactNumber), "{}", expression
            );
        }
        prop_assert!(selected("id", &json).is_ok(), "it is only beside the key");
    }
}

#[test]
fn extremes() {
    for accepted in ["-9223372036854775808", "9223372036854775807", "18446744073709551615", "0"] {
        assert_eq!(selected("@", accepted).unwrap(), accepted);
    }
    for refused in [
        "-9223372036854775809",
        "18446744073709551616",
        "9007199254740992.0",
        "9007199254740993e0",
        "-1e300",
        "0.1e-400",
    ] {
        assert_eq!(selected("@", refused), Err(SelectionError::InexactNumber), "{refused}");
    }
    for not_a_number in ["1e999", "-1e999", "01", "+1", ".5", "5.", "NaN", "Infinity", "1e"] {
        assert!(Document::parse(not_a_number).is_err(), "{not_a_number}");
    }
    assert_ne!(selected("@", "42"), selected("@", "\"42\""));
    assert_ne!(selected("@", "0"), selected("@", "-0"));
}
