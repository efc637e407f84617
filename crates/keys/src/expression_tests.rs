use super::*;

fn select(expression: &str, json: &str) -> Result<String, SelectionError> {
    let document = Document::parse(json).unwrap();
    let selection = Expression::compile(expression).unwrap().select(&document)?;
    Ok(String::from_utf8(selection.0).unwrap())
}

#[test]
fn an_inexact_number_in_another_field_has_no_effect() {
    let json = r#"{"id":"a","price":0.1000000000000000055}"#;
    assert_eq!(select("id", json).unwrap(), r#""a""#);
    assert_eq!(select("price", json), Err(SelectionError::InexactNumber));
    for lossy in ["@", "not_null(price, id)", "[id, price]"] {
        assert_eq!(select(lossy, json), Err(SelectionError::InexactNumber), "{lossy}");
    }
}

#[test]
fn an_evaluation_error_names_types_and_not_values() {
    let error = select("json(secret)", r#"{"secret":"s3cr3t"}"#).unwrap_err().to_string();
    assert!(error.contains("json()") && !error.contains("s3cr3t"), "{error}");
    let error = select("json(secret)", r#"{"secret":["s3cr3t"]}"#).unwrap_err().to_string();
    assert!(error.contains("array") && !error.contains("s3cr3t"), "{error}");
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
