//! An [`IdempotencyRecord`] as a DynamoDB item, and back.
//!
//! Numbers are never rounded. A guard compares attributes for equality with the values that were
//! read, so a takeover with a rounded number could not succeed. An item with a number that an
//! [`IdempotencyRecord`] cannot hold exactly is unreadable ([`Corrupt`]).

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    record::{Fingerprint, IdempotencyRecord, Owner, Status},
    store::{Extent, Guard, Write},
};

use crate::{
    attributes::{Attributes, DataForm, SortKey},
    value::{
        self, json_text, millis, provenance, read_provenance, scaled, seconds, shard_of, status,
        token,
    },
};

/// The largest item DynamoDB holds, names included.
pub(crate) const LARGEST: usize = 400 * 1024;

/// Room for the attributes of most items.
const ATTRIBUTES: usize = 14;

/// An item as the SDK has it.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// The primary key of an item: each attribute of it, the partition key first.
pub(crate) fn key_fields<'n>(names: &'n Attributes, key: &Key) -> Vec<(&'n str, AttributeValue)> {
    let text = AttributeValue::S(key.as_str().to_owned());
    match &names.sort_key {
        None => vec![(&names.id, text)],
        Some(SortKey { name, partition }) => {
            vec![(&names.id, AttributeValue::S(partition.of(key.as_str()))), (name, text)]
        }
    }
}

/// The primary key of an item.
pub(crate) fn primary_key(names: &Attributes, key: &Key) -> Item {
    let fields = key_fields(names, key).into_iter();
    fields.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The key text of an item that was read.
pub(crate) fn key_text<'i>(names: &Attributes, item: &'i Item) -> Option<&'i str> {
    let name = names.sort_key.as_ref().map_or(&names.id, |sort_key| &sort_key.name);
    item.get(name.as_ref())?.as_s().ok().map(String::as_str)
}

/// An attribute of a record, with `None` if the record does not have it.
pub(crate) type Field<'n> = (&'n str, Option<AttributeValue>);

/// Every attribute beside the key. A write that replaces an item has to remove those that the record does not have.
pub(crate) fn fields<'n>(
    names: &'n Attributes,
    key: &Key,
    record: &IdempotencyRecord,
) -> impl Iterator<Item = Field<'n>> {
    let owner = (&*names.owner, record.owner.map(token));
    let of_claim = [
        (&*names.validation, text(record.fingerprint.as_ref().map(Fingerprint::as_str))),
        (&*names.application, text(record.application.as_deref())),
        (&*names.fence, count(record.fence)),
        (&*names.provenance, record.provenance.as_ref().map(provenance)),
    ];
    settled(names, record)
        .into_iter()
        .chain(left(names, key, record))
        .chain([owner])
        .chain(of_claim)
}

/// The attributes that an update by this write sets or removes. A settlement follows from the record of its claim, so it names
/// only those that differ from that: a third of what a whole record would say.
pub(crate) fn changes<'n>(
    names: &'n Attributes,
    write: &Write,
    record: &IdempotencyRecord,
) -> Vec<Field<'n>> {
    let owner = match (write.extent(), &write.guard) {
        (Extent::Lease, _) => {
            let steps = text(record.steps.as_deref()).map(|steps| (&*names.steps, Some(steps)));
            let lease = (&*names.in_progress_expiration, record.lease_until.map(millis));
            let expiry = (&*names.expiration, Some(seconds(record.expires_at)));
            let lease = [lease, expiry].into_iter().chain(steps);
            // A step takes the room of the record that its claim has kept.
            let gives_way = record.steps.is_some() && record.payload.is_none();
            let kept = gives_way.then_some([(&*names.payload, None), (&*names.unfinished, None)]);
            return lease.chain(kept.into_iter().flatten()).collect();
        }
        (Extent::Outbox, _) => return vec![(&names.outbox, None), (&names.unfinished, None)],
        (Extent::Record, Guard::OwnedBy(owner)) => *owner,
        (Extent::Record, _) => return fields(names, &write.key, record).collect(),
    };
    // Only earlier attempts leave an error or a row of losses, and their counts never fall.
    let is_first = record.failed_attempts == 0 && record.lost_attempts == 0;
    let left = left(names, &write.key, record).into_iter();
    let left = left.skip(if is_first { OF_EARLIER } else { 0 });
    let owner = (record.owner != Some(owner)).then(|| (&*names.owner, record.owner.map(token)));
    let settled = settled(names, record).into_iter().filter(|(_, value)| value.is_some());
    settled.chain(left).chain(owner).collect()
}

fn text(text: Option<&str>) -> Option<AttributeValue> {
    text.map(|text| AttributeValue::S(text.to_owned()))
}

fn count(count: u64) -> Option<AttributeValue> {
    (count > 0).then(|| AttributeValue::N(count.to_string()))
}

/// The attributes that a settlement sets, and that its claim does not have beyond that.
fn settled<'n>(names: &'n Attributes, record: &IdempotencyRecord) -> [Field<'n>; 7] {
    [
        (&*names.status, Some(status(record.status))),
        (&*names.expiration, Some(seconds(record.expires_at))),
        (&*names.data, record.result.as_deref().map(|json| value::result(names.data_form, json))),
        (&*names.last_owner, record.last_owner.map(token)),
        (&*names.failed_attempts, count(record.failed_attempts.into())),
        (&*names.lost_attempts, count(record.lost_attempts.into())),
        (&*names.outbox, text(record.outbox.as_deref())),
    ]
}

/// How many of the attributes that a claim may have are of earlier attempts.
const OF_EARLIER: usize = 2;

/// The attributes that a claim may have, and that its settlement may remove.
fn left<'n>(names: &'n Attributes, key: &Key, record: &IdempotencyRecord) -> [Field<'n>; 6] {
    [
        (&*names.consecutive_losses, count(record.consecutive_losses.into())),
        (&*names.error, text(record.error_type.as_deref())),
        (&*names.in_progress_expiration, record.lease_until.map(millis)),
        (&*names.steps, text(record.steps.as_deref())),
        (&*names.payload, text(record.payload.as_deref())),
        (&*names.unfinished, shard_of(key, record)),
    ]
}

/// The whole item.
pub(crate) fn encode(names: &Attributes, key: &Key, record: &IdempotencyRecord) -> Item {
    let mut item = Item::with_capacity(ATTRIBUTES);
    let key_fields = key_fields(names, key).into_iter();
    item.extend(key_fields.map(|(name, value)| (name.to_owned(), value)));
    for (name, value) in fields(names, key, record) {
        if let Some(value) = value {
            item.insert(name.to_owned(), value);
        }
    }
    item
}

/// A bound of the size of the item, found without making it. Not for results that are stored as values.
pub(crate) fn size_at_most(names: &Attributes, key: &Key, record: &IdempotencyRecord) -> usize {
    /// All names and numbers, as long as they can be.
    const REST: usize = 24 * 256;
    if names.data_form != DataForm::Json {
        return usize::MAX;
    }
    let worker = record.provenance.as_ref().map(|provenance| &provenance.worker);
    let texts = [
        record.result.as_deref(),
        record.steps.as_deref(),
        record.outbox.as_deref(),
        record.payload.as_deref(),
        record.error_type.as_deref(),
        record.application.as_deref(),
        record.fingerprint.as_ref().map(Fingerprint::as_str),
        record.provenance.as_ref().and_then(|provenance| provenance.source.as_deref()),
        record.provenance.as_ref().and_then(|provenance| provenance.record.as_deref()),
        worker.and_then(|worker| worker.request_id.as_deref()),
        worker.and_then(|worker| worker.function.as_deref()),
        worker.and_then(|worker| worker.version.as_deref()),
        worker.and_then(|worker| worker.log_stream.as_deref()),
    ];
    // A partition key has at most 2048 bytes.
    let partition = if names.sort_key.is_some() { 2048 } else { 0 };
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    texts.saturating_add(key.as_str().len()).saturating_add(partition).saturating_add(REST)
}

/// The size DynamoDB counts, or a little more: names and values in bytes, numbers a byte for two
/// digits and one more.
///
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>
pub(crate) fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len().saturating_add(value_size(value))).sum()
}

/// The same for a value.
pub(crate) fn value_size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => number_size(digits),
        // Three bytes for each list or map, and one for each of its elements.
        AttributeValue::L(items) => {
            items.iter().map(|item| value_size(item).saturating_add(1)).sum::<usize>() + 3
        }
        AttributeValue::M(members) => size(members) + members.len() + 3,
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Ss(texts) => texts.iter().map(String::len).sum(),
        AttributeValue::Ns(numbers) => numbers.iter().map(|digits| number_size(digits)).sum(),
        AttributeValue::Bs(all) => all.iter().map(|bytes| bytes.as_ref().len()).sum(),
        _ => 1,
    }
}

fn number_size(digits: &str) -> usize {
    digits.len().div_ceil(2).saturating_add(1)
}

/// An item that is not an idempotency record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt {
    /// The name of the attribute at fault.
    pub(crate) attribute: String,
    /// The problem with it; never its value.
    pub(crate) problem: &'static str,
}

/// Reads an item of this or another library.
pub(crate) fn decode(names: &Attributes, item: &Item) -> Result<IdempotencyRecord, Corrupt> {
    let read = ItemReader { item };
    let status = match read.text(&names.status)?.ok_or_else(|| absent(&names.status))? {
        "INPROGRESS" => Status::InProgress,
        "COMPLETED" => Status::Completed,
        "FAILED" => Status::PermanentlyFailed,
        _ => return Err(corrupt(&names.status, "is not INPROGRESS, COMPLETED or FAILED")),
    };
    let expires_at = read.number(&names.expiration, 3)?.ok_or_else(|| absent(&names.expiration))?;
    let mut record = IdempotencyRecord::new(status, Timestamp::EPOCH);
    record.expires_at = Timestamp::from_millis(expires_at);
    record.lease_until = read.number(&names.in_progress_expiration, 0)?.map(Timestamp::from_millis);
    record.owner = read.token(&names.owner)?;
    record.last_owner = read.token(&names.last_owner)?;
    record.failed_attempts = read.count(&names.failed_attempts)?;
    record.lost_attempts = read.count(&names.lost_attempts)?;
    record.consecutive_losses = read.count(&names.consecutive_losses)?;
    record.fence = read.number(&names.fence, 0)?.unwrap_or(0);
    record.fingerprint = read.text(&names.validation)?.map(Fingerprint::new);
    record.error_type = read.text(&names.error)?.map(Into::into);
    record.application = read.text(&names.application)?.map(Into::into);
    record.provenance = item.get(names.provenance.as_ref()).and_then(read_provenance);
    record.steps = read.text(&names.steps)?.map(Into::into);
    record.outbox = read.text(&names.outbox)?.map(Into::into);
    record.payload = read.text(&names.payload)?.map(Into::into);
    if let Some(value) = item.get(names.data.as_ref()) {
        let text = json_text(names.data_form, value);
        let text = text.ok_or_else(|| corrupt(&names.data, "cannot be converted to JSON"))?;
        record.result = Some(text.into());
    }
    Ok(record)
}

fn corrupt(attribute: &str, problem: &'static str) -> Corrupt {
    Corrupt { attribute: attribute.to_owned(), problem }
}

fn absent(attribute: &str) -> Corrupt {
    corrupt(attribute, "is missing")
}

struct ItemReader<'i> {
    item: &'i Item,
}

impl<'i> ItemReader<'i> {
    fn text(&self, name: &str) -> Result<Option<&'i str>, Corrupt> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::S(text)) => Ok(Some(text)),
            Some(_) => Err(corrupt(name, "is not a string")),
        }
    }

    fn token(&self, name: &str) -> Result<Option<Owner>, Corrupt> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        // Upper-case digits would be parsed as the same token, and every guard with it would then
        // fail.
        let owner = Owner::parse(text).filter(|owner| owner.to_string() == text);
        owner.map(Some).ok_or_else(|| corrupt(name, "is not 32 hexadecimal digits"))
    }

    fn count(&self, name: &str) -> Result<u32, Corrupt> {
        let number = self.number(name, 0)?.unwrap_or(0);
        u32::try_from(number).map_err(|_| corrupt(name, "is too large for a count"))
    }

    /// A number, times ten to the power of `places`.
    fn number(&self, name: &str, places: i32) -> Result<Option<u64>, Corrupt> {
        match self.item.get(name) {
            None => Ok(None),
            Some(AttributeValue::N(digits)) => scaled(digits, places)
                .map(Some)
                .ok_or_else(|| corrupt(name, "is negative, too large or too precise")),
            Some(_) => Err(corrupt(name, "is not a number")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use lambda_idempotency_core::{
        admission::{Claim, Settlement},
        record::{Json, Provenance, Worker},
    };

    use super::*;

    fn names() -> Attributes {
        Attributes::default()
    }

    fn full() -> IdempotencyRecord {
        let mut record =
            IdempotencyRecord::new(Status::PermanentlyFailed, Timestamp::from_secs(1_700_003_600));
        record.owner = Some(Owner::from_bits(1));
        record.last_owner = Some(Owner::from_bits(2));
        record.failed_attempts = 3;
        record.lost_attempts = 4;
        record.consecutive_losses = 2;
        record.fence = 1_700_000_000_123;
        record.lease_until = Some(Timestamp::from_millis(1_700_000_030_123));
        record.fingerprint = Some(Fingerprint::new("f"));
        record.result = Some(r#"{"ok":true}"#.into());
        record.error_type = Some("Declined".into());
        record.provenance = Some(provenance());
        record.steps = Some(r#"{"charge":{"id":"ch-1"}}"#.into());
        record.outbox = Some(r#"[{"body":"paid"}]"#.into());
        record.payload = Some(r#"{"orderId":"o-1"}"#.into());
        record
    }

    fn provenance() -> Provenance {
        let mut worker = Worker::default().with_request_id("8f5d9c3e-6c3a-4a52-b0ae-9d7f4a8c1b22");
        worker.function = Some("orders-prod-place-order".into());
        worker.version = Some("$LATEST".into());
        worker.log_stream = Some("2026/11/22/[$LATEST]0123456789abcdef0123456789abcdef".into());
        Provenance::new(Timestamp::from_millis(1_700_000_000_123), Arc::new(worker))
            .with_record("sqs", "2e1424d4-f796-459a-8184-9c92662be6da".into())
    }

    fn item(pairs: &[(&str, AttributeValue)]) -> Item {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn s(text: &str) -> AttributeValue {
        AttributeValue::S(text.into())
    }

    fn n(text: &str) -> AttributeValue {
        AttributeValue::N(text.into())
    }

    #[test]
    fn the_lease_that_powertools_leaves_behind_is_kept() {
        let found = item(&[
            ("id", s("orders-fn.app.process#5deaee1c")),
            ("status", s("COMPLETED")),
            ("expiration", n("1700003600")),
            ("in_progress_expiration", n("1700000030123")),
            ("data", s(r#"{"ok": true}"#)),
        ]);
        let record = decode(&names(), &found).unwrap();
        assert_eq!(record.lease_until, Some(Timestamp::from_millis(1_700_000_030_123)));
        assert_eq!(record.result.as_deref(), Some(r#"{"ok": true}"#));
        assert_eq!((record.owner, record.failed_attempts), (None, 0));
    }

    #[test]
    fn numbers_are_read_exactly_or_not_at_all() {
        for (text, places, value) in [
            ("0", 0, Some(0)),
            ("00.000", 3, Some(0)),
            ("1", 3, Some(1000)),
            ("1.7E+9", 3, Some(1_700_000_000_000)),
            ("1500e-1", 0, Some(150)),
            ("1500e-3", 0, None),
            ("1700000000.1234", 3, None),
            ("1700000030123.5", 0, None),
            ("0.0001", 3, None),
            ("-1", 0, None),
            ("1e300", 0, None),
            ("1e-300", 0, None),
            ("99999999999999999999", 0, None),
            ("18446744073709551615", 0, Some(u64::MAX)),
            ("", 0, None),
            (".", 0, None),
            ("NaN", 0, None),
            ("1e99999999999", 0, None),
        ] {
            assert_eq!(scaled(text, places), value, "{text} at {places}");
        }
    }

    #[test]
    fn what_is_not_a_record_is_named_and_not_quoted() {
        let good = [("status", s("COMPLETED")), ("expiration", n("1"))];
        for (bad, attribute) in [
            (("status", s("EXPIRED")), "status"),
            (("status", n("1")), "status"),
            (("expiration", s("1")), "expiration"),
            (("expiration", n("1.0001")), "expiration"),
            (("in_progress_expiration", n("-5")), "in_progress_expiration"),
            (("owner", s("me")), "owner"),
            (("owner", s("0000000000000000000000000000000A")), "owner"),
            (("last_owner", n("1")), "last_owner"),
            (("failed_attempts", n("4294967296")), "failed_attempts"),
            (("consecutive_losses", s("1")), "consecutive_losses"),
            (("data", n("NaN")), "data"),
            (("validation", n("1")), "validation"),
            (("error", n("1")), "error"),
            (("steps", n("1")), "steps"),
            (("outbox", n("1")), "outbox"),
            (("payload", n("1")), "payload"),
        ] {
            let mut found = item(&good);
            found.insert(bad.0.to_owned(), bad.1);
            let error = decode(&names(), &found).unwrap_err();
            assert_eq!(error.attribute, attribute);
        }
        for missing in ["status", "expiration"] {
            let mut found = item(&good);
            found.remove(missing);
            assert_eq!(decode(&names(), &found), Err(absent(missing)));
        }
    }

    #[test]
    fn the_size_is_never_less_than_dynamodb_counts() {
        let found = item(&[("id", s("k")), ("n", n("1700003600"))]);
        assert_eq!(size(&found), 2 + 1 + 1 + 6);
    }

    #[test]
    fn a_provenance_that_is_damaged_leaves_the_record_readable() {
        let map = |pairs: &[(&str, AttributeValue)]| AttributeValue::M(item(pairs));
        let mut found = item(&[("status", s("COMPLETED")), ("expiration", n("1"))]);
        let mut read = |value: AttributeValue| {
            found.insert("provenance".to_owned(), value);
            decode(&names(), &found).unwrap().provenance
        };
        for damaged in [s("orders"), map(&[]), map(&[("claimed_at", s("1"))])] {
            assert_eq!(read(damaged), None);
        }
        let partly = map(&[("claimed_at", n("7")), ("version", n("3")), ("function", s("f"))]);
        let partly = read(partly).unwrap();
        assert_eq!(partly.claimed_at, Timestamp::from_millis(7));
        let Worker { function, version, .. } = &*partly.worker;
        assert_eq!((function.as_deref(), version.as_deref()), (Some("f"), None));
    }

    #[test]
    fn a_fresh_record_is_billed_as_one_write_unit() {
        let longest = "x".repeat(64); // of a function
        let mut record = full();
        record.status = Status::InProgress;
        record.result = None;
        record.fingerprint = Some(Fingerprint::new("f".repeat(64)));
        record.application = Some(longest.as_str().into());
        let mut provenance = provenance();
        let mut worker = Worker::clone(&provenance.worker);
        worker.function = Some(longest.as_str().into());
        let record_of_a_shard = format!("shardId-000000000006:{}", "4".repeat(56));
        provenance.worker = Arc::new(worker);
        record.provenance = Some(provenance.with_record("kinesis", record_of_a_shard.into()));
        let key = Key::from_text(format!("{}#{}", "o".repeat(64), "a".repeat(64)));
        let whole = size(&encode(&names(), &key, &record));
        record.provenance = None;
        let without = size(&encode(&names(), &key, &record));
        println!("{whole} bytes, {without} without provenance");
        assert!(whole <= 1024, "{whole} bytes, of which {} are provenance", whole - without);
    }

    #[test]
    fn lists_and_maps_are_larger_than_what_is_in_them() {
        let list = AttributeValue::L(vec![s("ab"), n("123")]);
        assert_eq!(size(&item(&[("data", list)])), 4 + 3 + (1 + 2) + (1 + 3));
        let map = AttributeValue::M(item(&[("a", s("bc")), ("d", n("1"))]));
        assert_eq!(size(&item(&[("data", map)])), 4 + 3 + (1 + 1 + 2) + (1 + 1 + 2));
    }

    /// The record that a claim may find: for each bit, whether it has a field.
    fn found(bits: u32) -> Option<IdempotencyRecord> {
        let has = |bit: u32| bits >> bit & 1 == 1;
        let mut found = full();
        if !has(0) {
            return None;
        }
        if has(1) {
            // Its messages and its result are not the next claim's.
            found.status = Status::Completed;
            return Some(found);
        }
        (found.status, found.result, found.outbox) = (Status::InProgress, None, None);
        match has(2) {
            true => found.owner = None,
            false => found.last_owner = None,
        }
        (found.failed_attempts, found.lost_attempts) = (u32::from(has(3)), u32::from(has(4)));
        found.consecutive_losses = u32::from(has(4) && has(5));
        found.error_type = found.error_type.filter(|_| has(3));
        found.steps = found.steps.filter(|_| has(6));
        found.payload = found.payload.filter(|_| has(7));
        Some(found)
    }

    /// The claim is stored whole; what its settlement changes has to leave exactly what the settlement says.
    #[test]
    fn what_a_settlement_changes_leaves_the_whole_record_of_the_settlement() {
        let now = Timestamp::from_millis(1_700_000_040_123);
        let text = |text: &str| Some(Json::from(text));
        let error_type: Arc<str> = "Declined".into();
        let settlements = [
            Settlement::Complete { result: text("1"), outbox: text("[1]") },
            Settlement::Complete { result: None, outbox: None },
            Settlement::Commit { result: text("1"), outbox: None },
            Settlement::FailPermanently { result: text("1"), error_type: Arc::clone(&error_type) },
            Settlement::Release { error_type },
            Settlement::Undo,
            Settlement::Decline,
            Settlement::LeaveStanding,
        ];
        for bits in 0..1 << 12 {
            let has = |bit: u32| bits >> bit & 1 == 1;
            let mut claim =
                Claim::reading(Some("orders".into()).filter(|_| has(8)), Duration::ZERO);
            (claim.owner, claim.lease_until) =
                (Owner::from_bits(9), now.plus(Duration::from_secs(9)));
            (claim.retention, claim.payload) =
                (Duration::from_secs(99), text("{}").filter(|_| has(9)));
            claim.fingerprint = Some(Fingerprint::new("f")).filter(|_| has(10));
            claim.provenance = Some(provenance()).filter(|_| has(10));
            let (_, mut held) = claim.over(found(bits).as_ref(), now);
            let key = Key::from_text("place#o-1");
            let stored = encode(&names(), &key, &held.record);
            if has(11) {
                held.record.steps = text(r#"{"not":"stored"}"#);
            }
            for settlement in &settlements {
                let (guard, Some(record)) = held.write(settlement, now) else { continue };
                let write = Write::new(key.clone(), guard, Some(record.clone()));
                let mut item = stored.clone();
                for (name, value) in changes(&names(), &write, &record) {
                    match value {
                        Some(value) => item.insert(name.to_owned(), value),
                        None => item.remove(name),
                    };
                }
                let whole = encode(&names(), &key, &record);
                assert_eq!(item, whole, "{settlement:?} of {:?}", held.record);
            }
        }
    }

    /// A batch is filled up to its limit by this bound.
    #[test]
    fn the_bound_of_the_size_covers_every_text_of_a_record() {
        let long = format!("[{}]", "7".repeat(20_000));
        let key = Key::from_text("place#o-1");
        let texts: [fn(&mut IdempotencyRecord, &str); 7] = [
            |record, text| record.result = Some(text.into()),
            |record, text| record.steps = Some(text.into()),
            |record, text| record.outbox = Some(text.into()),
            |record, text| record.payload = Some(text.into()),
            |record, text| record.error_type = Some(text.into()),
            |record, text| record.application = Some(text.into()),
            |record, text| record.fingerprint = Some(Fingerprint::new(text)),
        ];
        for (n, set) in texts.iter().enumerate() {
            let mut record = full();
            set(&mut record, &long);
            let exact = size(&encode(&names(), &key, &record));
            assert!(size_at_most(&names(), &key, &record) >= exact, "text {n}");
        }
    }
}
