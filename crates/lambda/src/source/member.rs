//! Reads the members of an event's JSON: texts, lists, objects, bytes.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{
        IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::value::RawValue;

use crate::rejection::Rejection;

/// A member of an object, of whatever type; `None` if it is missing or `null`.
pub(super) type Member<'e> = Option<&'e RawValue>;

/// Declares an object of which these members are read, each by its name in JSON and maybe another one.
macro_rules! json_object {
    ($vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident $(: $json:literal $(| $alias:literal)?)?),* $(,)?
    }) => {
        #[derive(Default, serde::Deserialize)]
        $vis struct $name<'e> {$(
            $(#[$doc])*
            #[serde($(rename = $json, $(alias = $alias,)?)? borrow, default)]
            $field: $crate::source::member::Member<'e>,
        )*}
    };
}

pub(super) use json_object;

/// A string, borrowed if it has no escapes.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'e>(#[serde(borrow)] pub(super) Cow<'e, str>);

/// A member that is a string, borrowed if it has no escapes.
pub(super) fn text(member: Member<'_>) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(member?.get()).ok().map(|text| text.0)
}

/// A member that is a string, a number or a boolean, as text.
pub(super) fn scalar(member: Member<'_>) -> Option<String> {
    let raw = member?.get();
    let plain = !raw.starts_with(['"', '{', '[']) && raw != "null";
    if plain { Some(raw.to_owned()) } else { text(member).map(Cow::into_owned) }
}

/// A nested member, by the names on the path to it.
pub(super) fn descend<'e>(json: &'e str, names: &[&str]) -> Member<'e> {
    if !names.iter().all(|name| may_name(json, name)) {
        return None;
    }
    let whole = serde_json::from_str(json).ok()?;
    names.iter().try_fold(whole, |raw: &RawValue, name| {
        object::<BTreeMap<String, &RawValue>>(Some(raw)).remove(*name)
    })
}

/// Whether a member of this JSON, or of an object in it, may have this name. Found without parsing, because each
/// handler's span looks for a trace context that most records do not have.
fn may_name(json: &str, name: &str) -> bool {
    // Only `\u0061` and the like can stand for these.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    json.contains(name) || !name.bytes().all(plain) || json.contains(r"\u")
}

/// Text that is delivered as a list of bytes, in which bytes above 127 are negative numbers.
pub(super) fn text_of_bytes(numbers: &[i16]) -> Option<String> {
    let bytes = numbers.iter().map(|number| {
        u8::try_from(*number).or_else(|_| i8::try_from(*number).map(i8::cast_unsigned))
    });
    String::from_utf8(bytes.collect::<Result<_, _>>().ok()?).ok()
}

/// A member that is a string and not empty: an empty id would be the same for all records.
pub(super) fn id(member: Member<'_>) -> Option<Cow<'_, str>> {
    text(member).filter(|id| !id.is_empty())
}

/// A member that is a list.
pub(super) fn list(member: Member<'_>) -> Option<Vec<&RawValue>> {
    let text = member?.get();
    // An error would be made first, with its line and column.
    if text.starts_with('[') { serde_json::from_str(text).ok() } else { None }
}

/// The members of an object by name, in its order. A name that occurs twice is there twice: what it contains must not count as
/// done.
pub(super) fn named(member: Member<'_>) -> Option<Vec<(String, &RawValue)>> {
    struct Named;

    impl<'e> Visitor<'e> for Named {
        type Value = Vec<(String, &'e RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'e>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(member) = members.next_entry()? {
                found.push(member);
            }
            Ok(found)
        }
    }

    serde_json::Deserializer::from_str(member?.get()).deserialize_map(Named).ok()
}

/// A member that is an object; the default, without members, if it is not.
pub(super) fn object<'e, T: Deserialize<'e> + Default>(member: Member<'e>) -> T {
    member.and_then(members).unwrap_or_default()
}

/// The members of an object. Arrays are refused, because `serde` would read their items as members
/// in order.
pub(super) fn members<'e, T: Deserialize<'e>>(value: &'e RawValue) -> Option<T> {
    if !value.get().starts_with('{') {
        return None;
    }
    serde_json::from_str(value.get()).ok()
}

/// The items of a member that is a list; `None` if it is something else. Something else is read as a value, so the object
/// around it cannot be read if that is half a surrogate pair, or a number beyond the range of doubles. No source has one there.
pub(super) fn items<'e, D: Deserializer<'e>>(
    member: D,
) -> Result<Option<Vec<&'e RawValue>>, D::Error> {
    struct Items;

    impl<'e> Visitor<'e> for Items {
        type Value = Option<Vec<&'e RawValue>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }

        fn visit_seq<A: SeqAccess<'e>>(self, items: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(items)).map(Some)
        }

        fn visit_map<A: MapAccess<'e>>(self, members: A) -> Result<Self::Value, A::Error> {
            IgnoredAny::deserialize(MapAccessDeserializer::new(members)).map(|_| None)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(None)
        }
    }

    member.deserialize_any(Items)
}

/// The text of the base64 in the member with this name.
pub(super) fn base64_text<'e>(
    base64: Option<Cow<'e, str>>,
    member: &'static str,
) -> Result<Cow<'e, str>, Rejection> {
    let base64 = base64.ok_or(Rejection::NoMember(member))?;
    base64_decode(&base64).map(Cow::Owned).ok_or(Rejection::NotText(member))
}

/// The text, if the bytes are UTF-8.
pub(super) fn base64_decode(base64: &str) -> Option<String> {
    base64_bytes(base64).and_then(|bytes| String::from_utf8(bytes).ok())
}

pub(super) fn base64_bytes(base64: &str) -> Option<Vec<u8>> {
    STANDARD.decode(base64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Around<'e> {
        #[serde(borrow, default, deserialize_with = "items")]
        list: Option<Vec<&'e RawValue>>,
        after: u8,
    }

    #[test]
    fn what_is_not_a_list_counts_as_missing() {
        for other in ["null", "true", "-1", "1", "1.5", r#""a\u0062""#, r#"{"a":[{"b":1}]}"#] {
            let json = format!(r#"{{"list":{other},"after":7}}"#);
            let read: Around<'_> = serde_json::from_str(&json).unwrap();
            assert!(read.list.is_none() && read.after == 7, "{json}");
        }
    }

    #[test]
    fn a_list_has_its_items_as_they_are_written() {
        let read: Around<'_> = serde_json::from_str(r#"{"list":[1,{"a": 2}],"after":7}"#).unwrap();
        let items: Vec<&str> = read.list.iter().flatten().map(|item| item.get()).collect();
        assert_eq!((items, read.after), (vec!["1", r#"{"a": 2}"#], 7));
    }

    #[test]
    fn a_member_is_found_however_its_name_is_written() {
        for (json, name) in [
            (r#"{"a":{"traceparent":"x"}}"#, "traceparent"),
            (r#"{"a":{"tr\u0061ceparent":"x"}}"#, "traceparent"),
            (r#"{"a":{"a\/b":"x"}}"#, "a/b"),
            (r#"{"a":{"\"":"x"}}"#, "\""),
        ] {
            assert_eq!(text(descend(json, &["a", name])).as_deref(), Some("x"), "{json}");
        }
        for absent in [r#"{"a":{"body":"traceparent"}}"#, r#"{"a":{}}"#, "[1]", "{"] {
            assert!(descend(absent, &["a", "traceparent"]).is_none(), "{absent}");
        }
    }
}
