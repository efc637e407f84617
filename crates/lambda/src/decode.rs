//! Decodes payloads for handlers.

use std::{
    any::type_name,
    cell::RefCell,
    collections::BTreeSet,
    error::Error,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};

use serde::{
    Deserializer,
    de::{
        self, DeserializeOwned, DeserializeSeed, IntoDeserializer as _, MapAccess, SeqAccess,
        Visitor,
    },
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
        Format::Json => {
            serde_json::from_str(payload).map_err(|error| refused::<T>(payload, &error))
        }
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
        text.and_then(Result::ok).ok_or_else(|| refused::<T>(payload, &error))
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

fn refused<T: DeserializeOwned>(payload: &str, error: &serde_json::Error) -> Rejection {
    let path = Path::default();
    // Once more, to learn where.
    let _ = T::deserialize(Traced {
        json: &mut serde_json::Deserializer::from_str(payload),
        path: &path,
    });
    Rejection::Decode {
        expected: type_name::<T>(),
        path: path.to_string(),
        problem: path.names.borrow().iter().find_map(|names| problem(names, &error.to_string())),
        line: error.line(),
        column: error.column(),
    }
}

/// The part of an error that is made of names which the type declares, and of nothing that a payload says.
fn problem(names: &[&str], error: &str) -> Option<String> {
    let missing = names.iter().map(|name| format!("missing field `{name}`"));
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let expected = match &*listed {
        [one, other] => format!("expected {one} or {other}"),
        [_] | [] => format!("expected {}", listed.concat()),
        _ => format!("expected one of {}", listed.join(", ")),
    };
    let is_unknown = error.starts_with("unknown ") && error.contains(&format!("`, {expected} at"));
    missing
        .into_iter()
        .find(|missing| error.starts_with(missing))
        .or_else(|| is_unknown.then_some(expected))
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

/// Where in a payload an error was met. It has the names of members that a type declares, and never a key of a map, which
/// may be payload.
#[derive(Default)]
struct Path {
    steps: RefCell<Vec<Step>>,
    /// The members and variants of the types that were read.
    names: RefCell<BTreeSet<&'static [&'static str]>>,
}

#[derive(Clone, Copy)]
enum Step {
    Field(&'static str),
    Item(usize),
    /// A member of a map, or one that the type does not declare.
    Member,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.borrow().iter().enumerate() {
            match step {
                Step::Item(index) => write!(f, "[{index}]")?,
                step => {
                    f.write_str(if at == 0 { "" } else { "." })?;
                    f.write_str(if let Step::Field(name) = step { name } else { "*" })?;
                }
            }
        }
        Ok(())
    }
}

/// Reads JSON and keeps the way to what is being read; after an error, the way to that. Variants of enums are read as one.
struct Traced<'p, D> {
    json: D,
    path: &'p Path,
}

/// Reads what is in a list, an object, an `Option` or a newtype.
struct Within<'p, V> {
    visitor: V,
    path: &'p Path,
    /// The members that a struct declares.
    fields: &'static [&'static str],
}

/// The members or the items of one value.
struct Parts<'p, A> {
    access: A,
    path: &'p Path,
    fields: &'static [&'static str],
    next: Step,
}

/// One of them.
struct Part<'p, S> {
    seed: S,
    path: &'p Path,
    step: Step,
}

macro_rules! read_as_one {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.json.$method($($argument,)* visitor)
        }
    )*};
}

macro_rules! read_within {
    ($($method:ident($($argument:ident: $type:ty),*) $fields:expr;)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.json.$method($($argument,)* Within { visitor, path: self.path, fields: $fields })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Traced<'_, D> {
    type Error = D::Error;

    read_as_one! {
        deserialize_any() deserialize_bool() deserialize_char() deserialize_i8() deserialize_i16() deserialize_i32()
        deserialize_i64() deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_u128() deserialize_f32() deserialize_f64() deserialize_str() deserialize_string() deserialize_bytes()
        deserialize_byte_buf() deserialize_unit() deserialize_unit_struct(name: &'static str) deserialize_identifier()
        deserialize_ignored_any()
    }

    read_within! {
        deserialize_option() &[];
        deserialize_newtype_struct(name: &'static str) &[];
        deserialize_seq() &[];
        deserialize_tuple(length: usize) &[];
        deserialize_tuple_struct(name: &'static str, length: usize) &[];
        deserialize_map() &[];
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.path.names.borrow_mut().insert(fields);
        self.json.deserialize_struct(name, fields, Within { visitor, path: self.path, fields })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.path.names.borrow_mut().insert(variants);
        self.json.deserialize_enum(name, variants, visitor)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Traced { json, path: self.path })
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, json: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Traced { json, path: self.path })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let Self { visitor, path, fields } = self;
        visitor.visit_seq(Parts { access, path, fields, next: Step::Item(0) })
    }

    fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        let Self { visitor, path, fields } = self;
        visitor.visit_map(Parts { access, path, fields, next: Step::Member })
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Parts<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        let (path, step) = (self.path, self.next);
        if let Step::Item(index) = &mut self.next {
            *index += 1;
        }
        self.access.next_element_seed(Part { seed, path, step })
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Parts<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        if self.fields.is_empty() {
            return self.access.next_key_seed(seed); // of a map, whose keys need not be text
        }
        let Some(name) = self.access.next_key::<String>()? else { return Ok(None) };
        let field = self.fields.iter().find(|field| **field == name);
        self.next = field.map_or(Step::Member, |field| Step::Field(field));
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.access.next_value_seed(Part { seed, path: self.path, step: self.next })
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Part<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<S::Value, D::Error> {
        let Self { seed, path, step } = self;
        path.steps.borrow_mut().push(step);
        let value = seed.deserialize(Traced { json, path })?;
        path.steps.borrow_mut().pop();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Order {
        id: u32,
    }

    /// Names that the type declares; of maps and lists the place alone, since a key of a map may be payload.
    #[test]
    fn a_refusal_names_the_member() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Deposit {
            #[serde(default)]
            counts: std::collections::HashMap<u32, u32>,
            customer: Option<Customer>,
            #[serde(rename = "orders")]
            all: std::collections::HashMap<String, Vec<Order>>,
        }

        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Customer {
            zip: u32,
        }

        for (payload, place) in [
            (
                r#"{"customer":{"zip":"s3cr3t"},"orders":{}}"#,
                " in `customer.zip` (line 1, column 27)",
            ),
            (
                r#"{"customer":{"s3cr3t":1},"orders":{}}"#,
                " in `customer`: missing field `zip` (line 1",
            ),
            (r#"{"orders":{"s3cr3t":[{"id":1},{"id":-1}]}}"#, " in `orders.*[1].id` (line 1"),
            // The error is behind a map whose keys are not text.
            (
                r#"{"counts":{"5":1},"customer":{"zip":"s3cr3t"},"orders":{}}"#,
                " in `customer.zip` (line 1",
            ),
            (r#"{"s3cr3t":1}"#, "Deposit`: missing field `orders` (line 1"),
            (r#"["s3cr3t"]"#, "[0]` (line 1"),
            ("{", "Deposit` (line 1"),
            ("s3cr3t", "Deposit` (line 1"),
        ] {
            for format in [Format::Json, Format::Text] {
                let message = decode::<Deposit>(payload, format).unwrap_err().to_string();
                assert!(message.contains(place) && !message.contains("s3cr3t"), "{message}");
            }
        }
    }

    /// It is said only in names that the type declares: errors of serde quote the payload beside them.
    #[test]
    fn a_refusal_says_what_is_missing_or_expected() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        #[expect(dead_code, reason = "only read")]
        struct Payment {
            paid_by: Means,
            #[serde(default)]
            orders: Vec<Order>,
            #[serde(default)]
            state: Option<State>,
        }

        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Means {
            Card,
            Cash,
            Invoice,
        }

        #[derive(Debug)]
        struct State;

        impl<'de> serde::Deserialize<'de> for State {
            fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(json)?;
                Err(de::Error::custom(text))
            }
        }

        for (payload, said) in [
            (
                r#"{"paidBy":"card"}"#,
                "Payment`: expected one of `paid_by`, `orders`, `state` (line 1",
            ),
            ("{}", "Payment`: missing field `paid_by` (line 1"),
            (r#"{"paid_by":"card","orders":[{}]}"#, "` in `orders[0]`: missing field `id` (line 1"),
            (
                r#"{"paid_by":"s3cr3t"}"#,
                "` in `paid_by`: expected one of `card`, `cash`, `invoice` (line 1",
            ),
            // An error of the type's own, made of the payload.
            (r#"{"paid_by":"card","state":"missing field `s3cr3t`"}"#, "` in `state` (line 1"),
            (
                r#"{"paid_by":"card","state":"unknown variant `s3cr3t`, expected `s3cr3t` or"}"#,
                "` in `state` (line 1",
            ),
        ] {
            let message = decode::<Payment>(payload, Format::Json).unwrap_err().to_string();
            assert!(message.contains(said) && !message.contains("s3cr3t"), "{payload}: {message}");
        }
    }
}
