//! Keys that distinct records could share are refused, unless the user accepts collisions.

use lambda_idempotency_keys::{
    KeyFormat, SelectionError,
    powertools::{Collision, PowertoolsKeys, PowertoolsLanguage},
};

use super::select;
use crate::bodies::{made, selector};

fn python() -> PowertoolsKeys {
    PowertoolsKeys::python("p")
}

fn typescript() -> PowertoolsKeys {
    PowertoolsKeys::typescript("p")
}

#[test]
fn records_that_share_a_key_are_refused_unless_that_is_accepted() {
    let (py, ts) = (python(), typescript());
    let inexact = "0.1000000000000000055";
    for (powertools, collision, one, other) in [
        (&py, Collision::Number, inexact, "0.1"),
        (&py, Collision::Number, "1e999", "2e999"),
        (&py, Collision::RepeatedMember, r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (&ts, Collision::Number, inexact, "0.1"),
        (&ts, Collision::Number, "9007199254740993", "9007199254740992"),
        (&ts, Collision::Number, "9007199254740992", "9007199254740993"),
        (&ts, Collision::Number, "[1e999]", "[null]"),
        (&ts, Collision::Prototype, r#"{"a":1,"__proto__":{"b":1}}"#, r#"{"a":1}"#),
        (&ts, Collision::RepeatedMember, r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (&ts, Collision::TakenForMissing, "0", "-0"),
        (&ts, Collision::TakenForMissing, "false", "false"),
        (&ts, Collision::TakenForMissing, "[0]", "[0.0]"),
    ] {
        let wrap = |json: &str| format!(r#"{{"id":{json}}}"#);
        assert_eq!(
            select(powertools, "id", &wrap(one)),
            Err(SelectionError::Collision(collision)),
            "{one}"
        );
        let accepting = powertools.clone().accept_collisions();
        let accepted = select(&accepting, "id", &wrap(one)).unwrap();
        assert_eq!(accepted, select(&accepting, "id", &wrap(other)).unwrap(), "{one}");
    }
}

#[test]
fn collisions_in_parts_that_are_not_selected_have_no_effect() {
    let json =
        r#"{"id":"a","price":0.1000000000000000055,"no":9007199254740993,"p":{"__proto__":1}}"#;
    for powertools in [python(), typescript()] {
        assert_eq!(select(&powertools, "id", json).unwrap(), r#""a""#);
        let lossy = Err(SelectionError::Collision(Collision::Number));
        assert_eq!(select(&powertools, "price", json), lossy);
    }
    assert_eq!(select(&python(), "no", json).unwrap(), "9007199254740993", "Python is exact");
}

#[test]
fn a_language_is_chosen_by_name() {
    for language in [PowertoolsLanguage::Python, PowertoolsLanguage::TypeScript] {
        assert_eq!(language.name().parse(), Ok(language));
    }
    let error = "python".parse::<PowertoolsLanguage>().unwrap_err().to_string();
    assert!(error.contains("`powertools-python`"), "{error}");
}

/// A list that JMESPath makes shorter, or a value that it takes for missing.
#[test]
fn what_a_projection_drops_is_refused_unless_that_is_accepted() {
    let json = r#"{"items":[{"id":1},{}],"zero":0}"#;
    for (powertools, hashed) in [(python(), "[1]"), (typescript(), "[1]")] {
        let missing = Err(SelectionError::PartMissing { part: "2".to_owned() });
        assert_eq!(select(&powertools, "items[*].id", json), missing);
        let accepting = powertools.accept_collisions();
        assert_eq!(select(&accepting, "items[*].id", json).unwrap(), hashed);
    }
    let taken = Err(SelectionError::Collision(Collision::TakenForMissing));
    assert_eq!(
        select(&typescript(), "{x: items, y: not_null(zero)}", json),
        Err(SelectionError::PartMissing { part: "`y`".to_owned() })
    );
    assert_eq!(select(&typescript(), "zero", json), taken);
    assert_eq!(select(&python(), "not_null(zero)", json).unwrap(), "0");
}

#[test]
fn missing_values_are_refused_or_hashed_as_powertools_does() {
    let json = r#"{"id":"a","nil":null,"empty":"","list":[]}"#;
    let part = |part: &str| SelectionError::PartMissing { part: part.to_owned() };
    // The expression, why it is refused, and what Python and TypeScript hash for it.
    for (expression, refused, accepted) in [
        ("missing", SelectionError::Missing, [None, None]),
        ("nil", SelectionError::Missing, [None, None]),
        ("empty", SelectionError::Empty, [None, Some(r#""""#)]),
        ("list", SelectionError::Empty, [None, Some("[]")]),
        ("[id, missing]", part("2"), [Some(r#"["a", null]"#), Some(r#"["a",null]"#)]),
        (
            "{a: id, b: nil}",
            part("`b`"),
            [Some(r#"{"a": "a", "b": null}"#), Some(r#"{"a":"a","b":null}"#)],
        ),
    ] {
        for (powertools, accepted) in [python(), typescript()].into_iter().zip(accepted) {
            assert_eq!(select(&powertools, expression, json), Err(refused.clone()), "{expression}");
            let hashed = select(&powertools.accept_collisions(), expression, json).ok();
            assert_eq!(hashed.as_deref(), accepted, "{expression}");
        }
    }
    let all_missing = "[missing, nil]";
    assert_eq!(select(&python(), all_missing, json), Err(SelectionError::Empty));
    assert_eq!(
        select(&python().accept_collisions(), all_missing, json),
        Err(SelectionError::Empty)
    );
    assert_eq!(select(&typescript(), all_missing, json), Err(part("1")));
    assert_eq!(
        select(&typescript().accept_collisions(), all_missing, json).unwrap(),
        "[null,null]"
    );
}

#[test]
fn without_an_expression_typescript_hashes_null() {
    let null = |powertools: PowertoolsKeys| select(&powertools, "@", "null");
    assert_eq!(null(typescript()), Err(SelectionError::Missing));
    assert_eq!(null(typescript().accept_collisions()).unwrap(), "null");
    assert_eq!(null(python().accept_collisions()), Err(SelectionError::Missing));
}

#[test]
fn a_fingerprint_of_a_missing_value_is_refused_too() {
    for powertools in [python(), typescript()] {
        let fingerprint = |powertools: PowertoolsKeys| {
            let document = || panic!("it reads the text itself");
            let amount = selector(&powertools, "amount").unwrap();
            amount.fingerprint(r#"{"id":1}"#, document, &KeyFormat::Hashed).unwrap()
        };
        assert_eq!(fingerprint(powertools.clone()), Err(SelectionError::Missing));
        assert!(fingerprint(powertools.accept_collisions()).is_ok());
    }
}

#[test]
fn errors_contain_the_remedy_and_not_the_value() {
    let error = select(&typescript(), "id", r#"{"id":9007199254740993}"#).unwrap_err().to_string();
    assert!(error.contains("accept_collisions") && !error.contains("90071"), "{error}");
    let error =
        select(&python(), "powertools_json(id)", r#"{"id":"s3cr3t"}"#).unwrap_err().to_string();
    assert!(error.contains("cannot read the text") && !error.contains("s3cr3t"), "{error}");
    let read = |powertools, text: &str| made(&selector(&powertools, "@").unwrap(), text).map(drop);
    let error = read(typescript(), "{\"a\":\n tru}").unwrap_err().to_string();
    assert!(error.contains("line 2, column 2"), "{error}");
    assert!(read(python(), &"[".repeat(100_000)).is_err());
}
