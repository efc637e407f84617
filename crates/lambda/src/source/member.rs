//! A list that is read together with the object around it.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};
use serde_json::value::RawValue;

/// The items of a member that is a list; `None` if it is something else. What is not a list is read as a value, so the object
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
}
