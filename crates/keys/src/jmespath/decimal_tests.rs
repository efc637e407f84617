use super::*;

fn is_exact(numeral: &str) -> bool {
    Decimal::of(numeral).is_exact()
}

fn shown(number: &Decimal) -> String {
    let sign = if number.negative { "-" } else { "" };
    format!("{sign}{}e{}", number.digits, number.power)
}

#[test]
fn a_number_that_prints_as_it_was_read_is_exact() {
    for numeral in ["0", "-0", "0.1", "0.10", "1e3", "1E+3", "1.5e-7", "123.456", "100", "1e22"] {
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
    for numeral in ["0.0000000000001", "123456789.12345", "-99999999999.99", "1e-270", "1e280"] {
        assert!(is_exact(numeral), "{numeral}");
        let nearest = Decimal::of(numeral).nearest();
        assert_eq!(numeral.parse(), Ok(nearest));
        let printed = Decimal::of(&format!("{nearest:e}"));
        assert_eq!(shown(&Decimal::of(numeral)), shown(&printed), "{numeral}");
    }
}
