//! Decodes payloads for handlers.

use std::{
    any::type_name,
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::{
    Deserializer,
    de::{self, DeserializeOwned, IntoDeserializer as _, Visitor},
    forward_to_deserialize_any,
};
use serde_json::value::RawValue;

use crate::rejection::Rejection;

/// The kinds of payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A part of the event's own JSON, such as an EventBridge event's detail or a whole record.
    Json,
    /// The text of a producer, which may be JSON.
    Text,
    /// The text of a producer in which a key expression found JSON.
    JsonText,
}

/// Decodes a payload. The error contains the position of the problem, and nothing of the payload.
///
/// The user's `Deserialize` may panic, which must not affect the other records of the batch.
pub(crate) fn decode<T: DeserializeOwned>(payload: &str, format: Format) -> Result<T, Rejection> {
    catch_unwind(AssertUnwindSafe(|| match format {
        Format::Json => serde_json::from_str(payload).map_err(refused::<T>),
        Format::Text => of_text(payload, begins_like_json(payload)),
        Format::JsonText => of_text(payload, true),
    }))
    .unwrap_or(Err(Rejection::DecodePanicked { expected: type_name::<T>() }))
}

/// A type of text gets the text exactly: whether a producer's text happens to be JSON must not decide what the handler
/// gets. Other types are read from JSON. Text that is not `meant_as_json` is also given to types that take text among
/// other things; JSON that only one of two readers takes is never given to a handler as one text.
fn of_text<T: DeserializeOwned>(payload: &str, meant_as_json: bool) -> Result<T, Rejection> {
    // A type may expect only the text that is in the JSON, and panic for another one.
    if let Ok(Ok(text)) = catch_unwind(AssertUnwindSafe(|| T::deserialize(Exact(payload)))) {
        return Ok(text);
    }
    serde_json::from_str(payload).or_else(|error| {
        let text: Option<Result<T, de::value::Error>> =
            (!meant_as_json).then(|| T::deserialize(payload.into_deserializer()));
        text.and_then(Result::ok).ok_or_else(|| refused::<T>(error))
    })
}

/// Whether a text begins as an object, a list or a text of JSON, after a byte order mark too, or is a number that
/// `serde_json` cannot represent.
fn begins_like_json(payload: &str) -> bool {
    let text = payload.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    text.starts_with(['{', '[', '"'])
        || (is_number
            && serde_json::from_str::<&RawValue>(text).is_ok()
            && serde_json::from_str::<f64>(text).is_err())
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn refused<T>(error: serde_json::Error) -> Rejection {
    Rejection::Decode { expected: type_name::<T>(), line: error.line(), column: error.column() }
}

/// Gives its text to types that ask for text or bytes, also within `Option` and newtypes, and nothing to others.
struct Exact<'t>(&'t str);

/// The type did not ask for text, or does not take this one.
#[derive(Debug)]
struct NotExact;

impl fmt::Display for NotExact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not text")
    }
}

impl Error for NotExact {}

impl de::Error for NotExact {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'de> Deserializer<'de> for Exact<'_> {
    type Error = NotExact;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NotExact> {
        Err(NotExact)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotExact> {
        visitor.visit_str(self.0)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotExact> {
        visitor.visit_str(self.0)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotExact> {
        visitor.visit_bytes(self.0.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotExact> {
        visitor.visit_bytes(self.0.as_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotExact> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, NotExact> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, PartialEq)]
    struct Order {
        id: u32,
    }

    fn text<T: DeserializeOwned>(payload: &str) -> Result<T, Rejection> {
        decode(payload, Format::Text)
    }

    #[test]
    fn json_and_plain_text_are_decoded() {
        assert_eq!(text::<Order>(r#"{"id":1}"#).unwrap(), Order { id: 1 });
        assert_eq!(text::<String>("Test message.").unwrap(), "Test message.");
        assert_eq!(text::<String>(r#""quoted""#).unwrap(), r#""quoted""#);
        assert_eq!(decode::<String>(r#""quoted""#, Format::Json).unwrap(), "quoted");
        assert!(decode::<String>("17", Format::Json).is_err());
    }

    #[test]
    fn a_refusal_contains_the_position_and_not_the_payload() {
        for format in [Format::Json, Format::Text] {
            let message = decode::<Order>(r#"{"id":"s3cr3t"}"#, format).unwrap_err().to_string();
            assert!(message.contains("Order") && message.contains("column 14"), "{message}");
            assert!(!message.contains("s3cr3t"), "{message}");
            assert!(decode::<Order>("s3cr3t", format).is_err());
        }
    }
}
