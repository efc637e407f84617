use super::*;

fn is_exact(numeral: &str) -> bool {
    Decimal::of(numeral).exact().is_some()
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
        let neighbours = Decimal::of(numeral).neighbours();
        assert!(neighbours[0] < neighbours[1], "{numeral}");
    }
}

#[test]
fn short_numbers_are_exact() {
    for numeral in ["0.0000000000001", "123456789.12345", "-99999999999.99", "1e-270", "1e280"] {
        let nearest = Decimal::of(numeral).exact().unwrap();
        assert_eq!(numeral.parse(), Ok(nearest));
        let printed = Decimal::of(&format!("{nearest:e}"));
        assert_eq!(shown(&Decimal::of(numeral)), shown(&printed), "{numeral}");
    }
}

#[test]
fn order_is_that_of_the_values() {
    let rising = [
        "-1e999",
        "-18446744073709551617",
        "-2.5",
        "-2.49",
        "-1e-999",
        "0",
        "1e-999",
        "0.1",
        "0.1000000000000000055",
        "1",
        "1.5",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.5",
        "1e400",
    ];
    for (at, one) in rising.iter().enumerate() {
        for (other_at, other) in rising.iter().enumerate() {
            let order = Decimal::of(one).compare(&Decimal::of(other));
            assert_eq!(order, at.cmp(&other_at), "{one} and {other}");
        }
    }
    for (one, other) in [("1", "1.0"), ("0", "-0"), ("100", "1e2"), ("0.5", "5E-1")] {
        assert!(Decimal::of(one).compare(&Decimal::of(other)).is_eq(), "{one} and {other}");
    }
}

#[test]
fn rounding_is_exact() {
    for (numeral, floor, ceil) in [
        ("1.5", "1e0", "2e0"),
        ("-1.5", "-2e0", "-1e0"),
        ("-0.5", "-1e0", "-e0"),
        ("1e-999999999", "e0", "1e0"),
        ("9.99", "9e0", "1e1"),
        ("1299.5", "1299e0", "13e2"),
        ("9007199254740993.5", "9007199254740993e0", "9007199254740994e0"),
        ("7e5", "7e5", "7e5"),
        ("1e999999999", "1e999999999", "1e999999999"),
    ] {
        let number = Decimal::of(numeral);
        assert_eq!((shown(&number.floor()), shown(&number.ceil())), (floor.into(), ceil.into()));
    }
}
