//! Keys that distinct records could share are refused, unless the user accepts collisions.

use lambda_idempotency_keys::SelectionError;
use lambda_idempotency_keys::powertools::{Collision, PowertoolsKeys, PowertoolsLanguage};

use super::select;

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
        assert_eq!(
            select(&powertools, "price > `0.1` || id", json),
            lossy,
            "the number decides the result"
        );
        assert_eq!(
            select(&powertools, "price && id", json).unwrap(),
            r#""a""#,
            "only its presence counts"
        );
    }
    assert_eq!(select(&python(), "no", json).unwrap(), "9007199254740993", "Python is exact");
}

#[test]
fn typescript_sorts_the_event_itself() {
    let event = r#"{"list":[3,1,2],"n":[{"x":2},{"x":1}]}"#;
    for (expression, selected) in [
        ("sort(list)", "[1,2,3]"),
        ("[list[0], sort(list)]", "[1,[1,2,3]]"),
        ("[list, sort(list), to_string(@.list)]", r#"[[1,2,3],[1,2,3],"[1,2,3]"]"#),
        ("n[*].x | [@[0], sort(@), @[0]]", "[2,[1,2],1]"),
        ("sort(`[2,1]`)", "[1,2]"),
    ] {
        assert_eq!(select(&typescript(), expression, event).unwrap(), selected, "{expression}");
    }
    assert_eq!(select(&python(), "[list[0], sort(list)]", event).unwrap(), "[3, [1, 2, 3]]");
}

/// JavaScript sees a half surrogate within a pair.
#[test]
fn half_surrogates_are_found_as_in_each_language() {
    for (whole, part, in_python, in_typescript) in [
        (r"a\ud83d\ude00b", r"\ud83d", false, true),
        (r"a\ud83d\ude00b", r"\ude00b", false, true),
        (r"a\ud83d\ude00b", r"\ud83d\ude00", true, true),
        (r"a\ud83d\ude00b", r"\ud83d\ude01", false, false),
        (r"a\ud83dx\ud83db", r"\ud83db", true, true),
        (r"a\ud83dx", r"\ud83db", false, false),
        (r"\ud83d\ud83d\ude00", r"\ud83d\ude00", true, true),
        (r"\ude00\ud83d", r"\ud83d\ude00", false, false),
    ] {
        let json = format!(r#"{{"whole":"{whole}","part":"{part}"}}"#);
        for (powertools, expected) in [(python(), in_python), (typescript(), in_typescript)] {
            let found = select(&powertools, "[contains(whole, part), 'x']", &json).unwrap();
            assert_eq!(found.contains("true"), expected, "{json} in {:?}", powertools.language());
        }
    }
}

#[test]
fn a_language_is_chosen_by_name() {
    for language in [PowertoolsLanguage::Python, PowertoolsLanguage::TypeScript] {
        assert_eq!(language.name().parse(), Ok(language));
        assert_eq!(PowertoolsKeys::of(language, "p").language(), language);
    }
    let error = "python".parse::<PowertoolsLanguage>().unwrap_err().to_string();
    assert!(error.contains("`powertools-python`"), "{error}");
}

#[test]
fn two_parts_of_the_same_name_are_a_collision() {
    for powertools in [python(), typescript()] {
        let lossy = Err(SelectionError::Collision(Collision::RepeatedMember));
        assert_eq!(select(&powertools, "{a: x, a: y}", r#"{"x":1,"y":2}"#), lossy);
        assert!(
            select(&powertools.accept_collisions(), "{a: x, a: y}", r#"{"x":1,"y":2}"#).is_ok()
        );
    }
}

#[test]
fn a_sum_that_depends_on_the_version_of_python_is_refused() {
    let sum = |powertools: &PowertoolsKeys, items: &str| select(powertools, "sum(@)", items);
    assert_eq!(
        sum(&python(), "[0.1,0.2,0.3]"),
        Err(SelectionError::Collision(Collision::Addition))
    );
    // The sum in Python up to 3.11; later versions return 0.6.
    assert_eq!(sum(&python().accept_collisions(), "[0.1,0.2,0.3]").unwrap(), "0.6000000000000001");
    assert_eq!(sum(&python(), "[0.5,0.25,1]").unwrap(), "1.75");
    assert_eq!(sum(&typescript(), "[0.1,0.2,0.3]").unwrap(), "0.6000000000000001");
    let average = |items: &str| select(&python(), "avg(@)", items).unwrap();
    assert_eq!(
        average("[9007199254740993,9007199254740993,9007199254740996]"),
        "9007199254740994.0"
    );
    assert_eq!(average("[-1,0]"), "-0.5");
    assert_eq!(average("[1,1,2]"), "1.3333333333333333");
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
    let null =
        |powertools: PowertoolsKeys| powertools.select(&powertools.read("null").unwrap(), None);
    assert_eq!(null(typescript()), Err(SelectionError::Missing));
    assert_eq!(null(typescript().accept_collisions()).unwrap().canonical_bytes(), b"null");
    assert_eq!(null(python().accept_collisions()), Err(SelectionError::Missing));
}

#[test]
fn a_fingerprint_of_a_missing_value_is_refused_too() {
    for powertools in [python(), typescript()] {
        let path = powertools.compile("amount").unwrap();
        let payload = powertools.read(r#"{"id":1}"#).unwrap();
        assert_eq!(powertools.fingerprint(&payload, &path), Err(SelectionError::Missing));
        assert!(powertools.clone().accept_collisions().fingerprint(&payload, &path).is_ok());
    }
}

#[test]
fn expressions_that_cannot_be_reproduced_are_an_error() {
    let json = r#"{"texts":["b","a"],"list":[2,1]}"#;
    for expression in ["sort(texts)", "reverse(list)"] {
        for powertools in [typescript(), typescript().accept_collisions()] {
            let error = select(&powertools, expression, json).unwrap_err().to_string();
            assert!(error.contains("cannot be reproduced"), "{error}");
        }
        assert!(select(&python(), expression, json).is_ok());
    }
}

#[test]
fn errors_contain_the_remedy_and_not_the_value() {
    let error = select(&typescript(), "id", r#"{"id":9007199254740993}"#).unwrap_err().to_string();
    assert!(error.contains("accept_collisions") && !error.contains("90071"), "{error}");
    let error = select(&python(), "abs(id)", r#"{"id":"s3cr3t"}"#).unwrap_err().to_string();
    assert!(error.contains("string") && !error.contains("s3cr3t"), "{error}");
    for (expression, reason) in [("nope(a)", "no function"), ("a.", ""), ("a == `{oops`", "")] {
        assert!(typescript().compile(expression).unwrap_err().to_string().contains(reason));
    }
    let error = typescript().read("{\"a\":\n tru}").unwrap_err().to_string();
    assert!(error.contains("line 2, column 2"), "{error}");
    assert!(python().read(&"[".repeat(100_000)).is_err());
}

#[test]
fn no_expression_exhausts_the_stack() {
    let list = format!(r#"{{"a":{}1{}}}"#, "[".repeat(120), "]".repeat(120));
    let work = move || {
        for (before, after) in [("[", "]"), ("!", ""), ("to_array(", ")"), ("@|", ""), ("{a:", "}")]
        {
            let expression = before.repeat(90) + "a" + &after.repeat(90);
            for powertools in [python().accept_collisions(), typescript().accept_collisions()] {
                select(&powertools, &expression, &list).unwrap();
            }
        }
    };
    // The stack size of Tokio's workers.
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}
