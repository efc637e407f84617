//! The values of an item's attributes, and back: texts and numbers, where a claim came from, in which part of an index an item
//! is, and results in the forms of other libraries.
//!
//! Python, Java and .NET store a result as JSON text in a string attribute, as we do. TypeScript and Go store the value as a
//! native attribute, which is converted to JSON here.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{
    browse::Left,
    clock::Timestamp,
    key::Key,
    record::{IdempotencyRecord, Owner, Provenance, Status},
};
use serde_json::value::RawValue;

use crate::attributes::DataForm;

pub(crate) fn status(status: Status) -> AttributeValue {
    let text = match status {
        Status::InProgress => "INPROGRESS",
        Status::Completed => "COMPLETED",
        Status::PermanentlyFailed => "FAILED",
    };
    AttributeValue::S(text.to_owned())
}

pub(crate) fn token(owner: Owner) -> AttributeValue {
    AttributeValue::S(owner.to_string())
}

pub(crate) fn millis(at: Timestamp) -> AttributeValue {
    AttributeValue::N(at.as_millis().to_string())
}

/// Seconds, with a fraction if another library wrote one.
pub(crate) fn seconds(at: Timestamp) -> AttributeValue {
    let (secs, rest) = (at.as_secs(), at.as_millis() % 1000);
    AttributeValue::N(if rest == 0 { secs.to_string() } else { format!("{secs}.{rest:03}") })
}

/// `number` times ten to the power of `places`, if that is a whole number that fits.
pub(crate) fn scaled(number: &str, places: i32) -> Option<u64> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = i32::try_from(fraction.len()).ok()?;
    let shift = exponent.checked_add(places)?.checked_sub(fraction)?;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    if shift >= 0 {
        let factor = 10u64.checked_pow(u32::try_from(shift).ok()?)?;
        digits.parse::<u64>().ok()?.checked_mul(factor)
    } else {
        let keep = digits.len().checked_sub(usize::try_from(shift.unsigned_abs()).ok()?)?;
        let (kept, dropped) = digits.split_at_checked(keep)?;
        if dropped.bytes().any(|b| b != b'0') || kept.is_empty() {
            return None;
        }
        kept.parse().ok()
    }
}

const CLAIMED_AT: &str = "claimed_at";

/// The attribute's value.
pub(crate) fn provenance(provenance: &Provenance) -> AttributeValue {
    let texts = provenance.texts();
    let mut members = HashMap::with_capacity(texts.len().saturating_add(1));
    for (name, text) in texts {
        if let Some(text) = text {
            members.insert(name.to_owned(), AttributeValue::S(text.to_owned()));
        }
    }
    members.insert(CLAIMED_AT.to_owned(), millis(provenance.claimed_at));
    AttributeValue::M(members)
}

/// Reads the attribute; `None` if it does not say when the key was claimed.
pub(crate) fn read_provenance(value: &AttributeValue) -> Option<Provenance> {
    let members = value.as_m().ok()?;
    let claimed_at = Timestamp::from_millis(scaled(members.get(CLAIMED_AT)?.as_n().ok()?, 0)?);
    Some(Provenance::of_texts(claimed_at, |name| {
        members.get(name)?.as_s().ok().map(|text| text.as_str().into())
    }))
}

/// In how many parts the index is. Another number would need a transition: items keep the shard that they were written with.
pub(crate) const SHARDS: u32 = 64;

/// The attribute that puts an item into the index: its shard, if anything is left in the record.
pub(crate) fn shard_of(key: &Key, record: &IdempotencyRecord) -> Option<AttributeValue> {
    let left = [Left::Messages, Left::Work].into_iter().find(|left| left.is_in(record))?;
    // FNV-1a, whose upper half mixes better than its lower one.
    let mix = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(16_777_619);
    let sum = key.as_str().bytes().fold(2_166_136_261, mix);
    Some(shard(left, (sum ^ (sum >> 16)) % SHARDS))
}

/// The value of the attribute in this shard.
pub(crate) fn shard(left: Left, number: u32) -> AttributeValue {
    let left = match left {
        Left::Messages => "messages",
        Left::Work => "work",
    };
    AttributeValue::S(format!("{left}#{number:02}"))
}

/// How deep lists and maps nest.
const DEEPEST: usize = 31;

/// The JSON text of a result; `None` if JSON cannot represent it (a number).
///
/// A string that is not valid JSON is read as a string result, as Java stores one.
pub(crate) fn json_text(form: DataForm, value: &AttributeValue) -> Option<String> {
    match value {
        AttributeValue::S(text) if form == DataForm::Json && is_json(text) => Some(text.clone()),
        native => {
            let mut out = String::new();
            write(native, &mut out)?;
            Some(out)
        }
    }
}

/// A result as an attribute; as text if it [does not fit](fits).
pub(crate) fn result(form: DataForm, json: &str) -> AttributeValue {
    let text = || AttributeValue::S(json.to_owned());
    match form {
        DataForm::Json => text(),
        DataForm::Native => native(json).unwrap_or_else(text),
    }
}

/// Whether a result can be stored in this form.
pub(crate) fn fits(form: DataForm, json: &str) -> bool {
    form == DataForm::Json || native(json).is_some()
}

fn native(json: &str) -> Option<AttributeValue> {
    to_attribute(serde_json::from_str(json).ok()?, 1)
}

/// Uses [`RawValue`], which keeps the digits of numbers.
///
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>
fn to_attribute(value: &RawValue, depth: usize) -> Option<AttributeValue> {
    let json = value.get();
    Some(match json.bytes().next()? {
        b'n' => AttributeValue::Null(true),
        b't' => AttributeValue::Bool(true),
        b'f' => AttributeValue::Bool(false),
        b'"' => AttributeValue::S(serde_json::from_str(json).ok()?),
        b'[' | b'{' if depth > DEEPEST => return None,
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(json).ok()?;
            let items = items.into_iter().map(|item| to_attribute(item, depth + 1));
            AttributeValue::L(items.collect::<Option<_>>()?)
        }
        b'{' => {
            let members: HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
            let members = members.into_iter();
            let members = members.map(|(name, item)| Some((name, to_attribute(item, depth + 1)?)));
            AttributeValue::M(members.collect::<Option<_>>()?)
        }
        _ => number_attribute(json)?,
    })
}

fn number_attribute(number: &str) -> Option<AttributeValue> {
    let mantissa = number.split(['e', 'E']).next().unwrap_or(number);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_matches('0');
    let size = number.parse::<f64>().ok()?.abs();
    let fits = digits.is_empty() || (digits.len() <= 38 && (1e-130..1e126).contains(&size));
    fits.then(|| AttributeValue::N(number.to_owned()))
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Recursion is bounded: DynamoDB nests 32 levels at most.
fn write(value: &AttributeValue, out: &mut String) -> Option<()> {
    match value {
        AttributeValue::S(text) => out.push_str(&serde_json::to_string(text).ok()?),
        AttributeValue::N(number) => write_number(number, out)?,
        AttributeValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        AttributeValue::Null(_) => out.push_str("null"),
        // JSON has no bytes; AWS writes them as base64 in JSON.
        AttributeValue::B(bytes) => write_bytes(bytes.as_ref(), out)?,
        AttributeValue::L(items) => write_list(items, out, write)?,
        AttributeValue::Ss(items) => write_list(items, out, |text, out| {
            out.push_str(&serde_json::to_string(text).ok()?);
            Some(())
        })?,
        AttributeValue::Ns(items) => write_list(items, out, |n, out| write_number(n, out))?,
        AttributeValue::Bs(items) => write_list(items, out, |b, out| write_bytes(b.as_ref(), out))?,
        AttributeValue::M(members) => {
            // A map has no order; sorted, the same item always gives the same text.
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (position, (name, value)) in members.into_iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(name).ok()?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        _ => return None,
    }
    Some(())
}

fn write_list<T>(
    items: &[T],
    out: &mut String,
    mut each: impl FnMut(&T, &mut String) -> Option<()>,
) -> Option<()> {
    out.push('[');
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        each(item, out)?;
    }
    out.push(']');
    Some(())
}

/// Writes the digits unchanged, because a float cannot hold 38 digits.
fn write_number(number: &str, out: &mut String) -> Option<()> {
    is_json(number).then(|| out.push_str(number))
}

fn write_bytes(bytes: &[u8], out: &mut String) -> Option<()> {
    out.push_str(&serde_json::to_string(&aws_smithy_types::base64::encode(bytes)).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::primitives::Blob;

    use super::*;

    fn record(status: Status) -> IdempotencyRecord {
        IdempotencyRecord::new(status, Timestamp::from_secs(9))
    }

    #[test]
    fn only_records_with_something_left_are_in_the_index() {
        let key = Key::from_text("op#1");
        for status in [Status::InProgress, Status::Completed, Status::PermanentlyFailed] {
            assert_eq!(shard_of(&key, &record(status)), None);
        }
        let mut kept = record(Status::InProgress);
        kept.payload = Some("{}".into());
        assert_eq!(shard_of(&key, &kept), Some(AttributeValue::S("work#31".into())));
        let mut unsent = record(Status::Completed);
        unsent.outbox = Some("[]".into());
        assert_eq!(shard_of(&key, &unsent), Some(AttributeValue::S("messages#31".into())));
    }

    /// The items of all versions have to be where this one looks.
    #[test]
    fn the_shard_of_a_key_does_not_change_with_versions() {
        let mut kept = record(Status::InProgress);
        kept.payload = Some("{}".into());
        for (key, shard) in [("place-order#a", "work#63"), ("place-order#b", "work#38")] {
            let found = shard_of(&Key::from_text(key), &kept);
            assert_eq!(found, Some(AttributeValue::S(shard.into())), "{key}");
        }
    }

    #[test]
    fn keys_are_in_all_shards() {
        let mut kept = record(Status::InProgress);
        kept.payload = Some("{}".into());
        let mut counts = std::collections::HashMap::new();
        for number in 0..6400 {
            let shard = shard_of(&Key::from_text(format!("place-order#{number}")), &kept);
            *counts.entry(format!("{shard:?}")).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 64);
        assert!(counts.values().all(|count| (50..200).contains(count)), "{counts:?}");
    }

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.into())
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.into())
    }

    #[test]
    fn json_text_stays_as_it_is() {
        for text in [r#"{"ok": true}"#, "null", r#""\u00e9""#, " [1]", "12345678901234567890.5"] {
            assert_eq!(json_text(DataForm::Json, &s(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn other_text_is_a_string() {
        assert_eq!(json_text(DataForm::Json, &s("paid")).as_deref(), Some(r#""paid""#));
        assert_eq!(json_text(DataForm::Json, &s("")).as_deref(), Some(r#""""#));
        assert_eq!(
            json_text(DataForm::Json, &s(r#"{"a": NaN}"#)).as_deref(),
            Some(r#""{\"a\": NaN}""#)
        );
    }

    #[test]
    fn native_attributes_become_the_json_they_stand_for() {
        let map = HashMap::from([
            ("ok".to_owned(), AttributeValue::Bool(true)),
            (
                "é\"".to_owned(),
                AttributeValue::L(vec![n("1.50"), s("x"), AttributeValue::Null(true)]),
            ),
            ("b".to_owned(), AttributeValue::B(Blob::new(*b"\x01\x02\x03"))),
            ("big".to_owned(), n("98765432109876543210987654321098765432")),
            ("set".to_owned(), AttributeValue::Ns(vec!["1".into(), "2".into()])),
        ]);
        assert_eq!(
            json_text(DataForm::Json, &AttributeValue::M(map)).as_deref(),
            Some(
                r#"{"b":"AQID","big":98765432109876543210987654321098765432,"ok":true,"set":[1,2],"é\"":[1.50,"x",null]}"#
            )
        );
        assert_eq!(json_text(DataForm::Json, &AttributeValue::Null(true)).as_deref(), Some("null"));
    }

    #[test]
    fn a_number_that_json_cannot_write_is_not_a_result() {
        assert_eq!(json_text(DataForm::Json, &n("NaN")), None);
    }

    #[test]
    fn values_are_stored_as_typescript_stores_them() {
        let of = |json: &str| result(DataForm::Native, json);
        assert_eq!(of("null"), AttributeValue::Null(true));
        assert_eq!(of("12.5"), n("12.5"));
        assert_eq!(of("\"42\""), s("42"));
        assert_eq!(of("[true]"), AttributeValue::L(vec![AttributeValue::Bool(true)]));
        for json in ["null", "12.5", "\"42\"", "\"\"", "[]", "{}", r#"{"a":[1,{"b":"x"}]}"#] {
            assert!(fits(DataForm::Native, json));
            assert_eq!(json_text(DataForm::Native, &of(json)).as_deref(), Some(json));
        }
    }

    #[test]
    fn values_that_dynamodb_cannot_hold_do_not_fit() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        for json in ["1e126", "-1e200", "1e-131", &deep(32), "not json"] {
            assert!(!fits(DataForm::Native, json), "{json}");
        }
        for json in ["1e125", "0", "0.0", "1e-130", "18446744073709551615", &deep(31)] {
            assert!(fits(DataForm::Native, json), "{json}");
        }
    }

    #[test]
    fn both_truth_values_are_native() {
        for (json, value) in [("true", true), ("false", false)] {
            assert_eq!(result(DataForm::Native, json), AttributeValue::Bool(value));
        }
    }

    #[test]
    fn lists_and_maps_nest_as_deep_as_dynamodb_allows() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
            assert!(fits(DataForm::Native, &nested(DEEPEST)), "{open}");
            assert!(!fits(DataForm::Native, &nested(DEEPEST + 1)), "{open}");
        }
    }

    #[test]
    fn sets_are_lists() {
        let texts = AttributeValue::Ss(vec!["a".into(), "\"".into()]);
        assert_eq!(json_text(DataForm::Json, &texts).as_deref(), Some(r#"["a","\""]"#));
        let bytes = AttributeValue::Bs(vec![Blob::new(*b"\x01\x02\x03"), Blob::new(*b"")]);
        assert_eq!(json_text(DataForm::Json, &bytes).as_deref(), Some(r#"["AQID",""]"#));
    }
}
