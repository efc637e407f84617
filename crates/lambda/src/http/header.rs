//! The `Idempotency-Key` header.
//!
//! The draft makes it a structured-field string, which is quoted (RFC 9651, section 3.3.3). Many
//! clients send the key without quotes, which is accepted too: `"abc"` and `abc` are the same key.

use lambda_http::http::{HeaderMap, HeaderName};

/// The longest key, in characters.
pub(super) const MAX_CHARACTERS: usize = 255;

/// What is wrong with the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HeaderError {
    #[error("it occurs more than once")]
    Repeated,
    #[error("it contains a comma and no quotes, as if two headers were joined")]
    Joined,
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {MAX_CHARACTERS} characters")]
    TooLong,
    #[error("it is neither a quoted string nor a key of visible ASCII characters")]
    Malformed,
}

/// The key in the header, if there is one.
pub(super) fn key(headers: &HeaderMap, name: &HeaderName) -> Result<Option<String>, HeaderError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(HeaderError::Repeated);
    }
    let text = value.to_str().map_err(|_| HeaderError::Malformed)?.trim_matches([' ', '\t']);
    let key = match text.strip_prefix('"') {
        Some(quoted) => quoted_string(quoted)?,
        // HTTP APIs deliver two headers as one, joined by a comma.
        None if text.contains(',') => return Err(HeaderError::Joined),
        None if text.bytes().all(|b| b.is_ascii_graphic() && b != b'"') => text.to_owned(),
        None => return Err(HeaderError::Malformed),
    };
    match key.chars().count() {
        0 => Err(HeaderError::Empty),
        1..=MAX_CHARACTERS => Ok(Some(key)),
        _ => Err(HeaderError::TooLong),
    }
}

/// Reads a structured-field string after its first quote. Parameters after the string are ignored, another member of a
/// list is not.
fn quoted_string(rest: &str) -> Result<String, HeaderError> {
    let mut key = String::with_capacity(rest.len());
    let mut chars = rest.chars();
    loop {
        match chars.next() {
            Some('\\') => match chars.next() {
                Some(escaped @ ('"' | '\\')) => key.push(escaped),
                _ => return Err(HeaderError::Malformed),
            },
            Some('"') => break,
            Some(plain @ ' '..='~') => key.push(plain),
            _ => return Err(HeaderError::Malformed),
        }
    }
    let behind = chars.as_str().trim_start();
    if behind.is_empty() {
        return Ok(key);
    }
    let Some(parameters) = behind.strip_prefix(';') else { return Err(HeaderError::Malformed) };
    let (mut is_quoted, mut is_escaped) = (false, false);
    for character in parameters.chars() {
        match character {
            // A comma between quotes is a part of a value.
            ',' if !is_quoted => return Err(HeaderError::Malformed),
            '"' if !is_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        is_escaped = is_quoted && character == '\\' && !is_escaped;
    }
    if is_quoted { Err(HeaderError::Malformed) } else { Ok(key) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<String>, HeaderError> {
        let name = HeaderName::from_static("idempotency-key");
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(&name, value.parse().unwrap());
        }
        key(&headers, &name)
    }

    #[test]
    fn quoted_and_bare_keys_are_the_same() {
        for value in
            ["\"8e03978e-40d5\"", "8e03978e-40d5", "  8e03978e-40d5 ", "\"8e03978e-40d5\";v=1"]
        {
            assert_eq!(read(&[value]), Ok(Some("8e03978e-40d5".to_owned())), "{value}");
        }
        assert_eq!(read(&["\"a,b\""]), Ok(Some("a,b".to_owned())));
        assert_eq!(read(&[r#""a";x="1, \"2";y"#]), Ok(Some("a".to_owned())));
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn escapes_follow_structured_fields() {
        assert_eq!(read(&[r#""a\"b\\c d""#]), Ok(Some(r#"a"b\c d"#.to_owned())));
        assert_eq!(read(&[r#""a\n""#]), Err(HeaderError::Malformed));
    }

    #[test]
    fn a_header_that_is_not_a_key_is_refused() {
        for (values, why) in [
            (&["a", "b"][..], HeaderError::Repeated),
            (&["a", "a"], HeaderError::Repeated),
            (&[""], HeaderError::Empty),
            (&["\"\""], HeaderError::Empty),
            (&["a b"], HeaderError::Malformed),
            (&["a,b"], HeaderError::Joined),
            (&["a, b"], HeaderError::Joined),
            (&["\"a\",\"b\""], HeaderError::Malformed),
            (&[r#""a";x=1, "b""#], HeaderError::Malformed),
            (&[r#""a";x="\"", "b""#], HeaderError::Malformed),
            (&[r#""a";x="1"#], HeaderError::Malformed),
            (&["\"a"], HeaderError::Malformed),
            (&["\"a\"b"], HeaderError::Malformed),
            (&["a\"b\""], HeaderError::Malformed),
        ] {
            assert_eq!(read(values), Err(why), "{values:?}");
        }
        assert!(read(&[&"x".repeat(255)]).is_ok());
        assert_eq!(read(&[&"x".repeat(256)]), Err(HeaderError::TooLong));
    }
}
