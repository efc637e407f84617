use super::*;

fn select(expression: &str, json: &str) -> Result<String, SelectionError> {
    let document = Document::parse(json).unwrap();
    let selection = Expression::compile(expression).unwrap().select(&document)?;
    Ok(String::from_utf8(selection.0).unwrap())
}

#[test]
fn nothing_null_and_empty_are_never_a_key() {
    let json = r#"{"n":null,"s":"","a":[],"o":{},"zero":0,"no":false}"#;
    assert_eq!(select("x", json), Err(SelectionError::Missing));
    assert_eq!(select("n", json), Err(SelectionError::Missing));
    for empty in ["s", "a", "o"] {
        assert_eq!(select(empty, json), Err(SelectionError::Empty), "{empty}");
    }
    assert_eq!(select("zero", json).unwrap(), "0");
    assert_eq!(select("no", json).unwrap(), "false");
}

#[test]
fn every_part_must_be_there() {
    let json = r#"{"a":1,"s":"","n":null}"#;
    let missing = |part: &str| Err(SelectionError::PartMissing { part: part.to_owned() });
    assert_eq!(select("[a, b]", json), missing("2"));
    assert_eq!(select("{x: a, y: n}", json), missing("`y`"));
    assert_eq!(select("@ | [a, n]", json), missing("2"));
    for (nested, part) in [
        ("[a, [a, b]]", "2, 2"),
        ("{x: a, y: {z: a, n: n}}", "`y`, `n`"),
        ("[a, b] || [a, n]", "2"),
        ("a && [a, b]", "2"),
        ("[[a], [a, n]] | [*].[[0], [1]]", "1, 2"),
    ] {
        assert_eq!(select(nested, json), missing(part), "{nested}");
    }
    let empty = SelectionError::PartEmpty { part: "2".to_owned() };
    assert_eq!(select("[a, s]", json), Err(empty));
    assert_eq!(select("@", json).unwrap(), r#"{"a":1,"n":null,"s":""}"#, "data may hold null");
}

#[test]
fn an_inexact_number_in_another_field_has_no_effect() {
    let json = r#"{"id":"a","price":0.1000000000000000055}"#;
    assert_eq!(select("id", json).unwrap(), r#""a""#);
    assert_eq!(select("price", json), Err(SelectionError::InexactNumber));
    assert_eq!(select("price > `0.1` || id", json).unwrap(), "true", "it is compared exactly");
    assert_eq!(select("price && id", json).unwrap(), r#""a""#, "it is there");
    assert_eq!(select("price < `5` && id", json).unwrap(), r#""a""#, "and it is less");
    assert_eq!(select("floor(price)", json).unwrap(), "0e0");
    for lossy in ["to_string(@)", "abs(price)", "price || id", "[id, price]"] {
        assert_eq!(select(lossy, json), Err(SelectionError::InexactNumber), "{lossy}");
    }
    assert_eq!(select("abs(id)", r#"{"id":9007199254740993}"#), Err(SelectionError::InexactNumber));
}

#[test]
fn an_evaluation_error_names_types_and_not_values() {
    let error = select("json(secret)", r#"{"secret":"s3cr3t"}"#).unwrap_err().to_string();
    assert!(error.contains("json()") && !error.contains("s3cr3t"), "{error}");
    let error = select("abs(secret)", r#"{"secret":"s3cr3t"}"#).unwrap_err().to_string();
    assert!(error.contains("number") && !error.contains("s3cr3t"), "{error}");
}

/// Each has the same result as with its own document.
#[test]
fn fields_read_by_one_call_of_json_do_not_affect_another() {
    let compile = |text| Expression::compile(text).unwrap();
    let both = [compile("json(body).id"), compile("json(body).n")];
    let [id, n] = &both;
    for bad in ["1,\\\"n\\\":2", "1e999", "\\\"\\\\ud800\\\""] {
        let json = format!(r#"{{"body":"{{\"id\":\"a\",\"n\":{bad}}}"}}"#);
        let document = Document::read(&json, &FieldSet::of(&both)).unwrap();
        assert_eq!(id.select(&document).unwrap().canonical_bytes(), b"\"a\"", "{json}");
        assert!(matches!(n.select(&document), Err(SelectionError::Evaluation { .. })), "{json}");
    }
    // An expression that was not known when the document was read still gets its fields of nested
    // JSON.
    let other = compile("json(body).other");
    let json = r#"{"body":"{\"id\":1,\"n\":2,\"other\":3}"}"#;
    let document = Document::read(json, &FieldSet::of(&both)).unwrap();
    for (expression, expected) in [(id, b"1"), (&other, b"3"), (n, b"2")] {
        assert_eq!(expression.select(&document).unwrap().canonical_bytes(), expected);
    }
}
