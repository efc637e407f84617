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
    store::Guard,
};

use crate::{
    attributes::{Attributes, DataForm, SortKey},
    data, provenance,
    scalar::{millis, scaled, seconds, status, token},
    shard::shard_of,
};

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
type Field<'n> = (&'n str, Option<AttributeValue>);

/// Every attribute beside the key. A write that replaces an item has to remove those that the record does not have.
pub(crate) fn fields<'n>(
    names: &'n Attributes,
    key: &Key,
    record: &IdempotencyRecord,
) -> impl Iterator<Item = Field<'n>> {
    let (owner, provenance) = (of_owner(names, record), of_provenance(names, record));
    most_fields(names, key, record).into_iter().chain([owner, provenance])
}

/// What an update under this guard has to set or remove. Who settles a claim leaves its token, which the guard names, and
/// its provenance, which no write with that token changes: a third of what a completion would say.
pub(crate) fn changes<'n>(
    names: &'n Attributes,
    key: &Key,
    record: &IdempotencyRecord,
    guard: &Guard,
) -> impl Iterator<Item = Field<'n>> {
    let (has_owner, has_provenance) = match guard {
        Guard::OwnedBy(owner) => (record.owner == Some(*owner), record.provenance.is_some()),
        Guard::Absent | Guard::Unchanged(_) => (false, false),
    };
    let owner = (!has_owner).then(|| of_owner(names, record));
    let provenance = (!has_provenance).then(|| of_provenance(names, record));
    most_fields(names, key, record).into_iter().chain(owner).chain(provenance)
}

fn of_owner<'n>(names: &'n Attributes, record: &IdempotencyRecord) -> Field<'n> {
    (&names.owner, record.owner.map(token))
}

fn of_provenance<'n>(names: &'n Attributes, record: &IdempotencyRecord) -> Field<'n> {
    (&names.provenance, record.provenance.as_ref().map(provenance::attribute))
}

fn most_fields<'n>(
    names: &'n Attributes,
    key: &Key,
    record: &IdempotencyRecord,
) -> [Field<'n>; 16] {
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let count = |n: u64| (n > 0).then(|| AttributeValue::N(n.to_string()));
    [
        (&*names.status, Some(status(record.status))),
        (&*names.expiration, Some(seconds(record.expires_at))),
        (&*names.in_progress_expiration, record.lease_until.map(millis)),
        (&*names.data, record.result.as_deref().map(|json| data::attribute(names.data_form, json))),
        (&*names.validation, record.fingerprint.as_ref().map(|f| text(f.as_str()))),
        (&*names.last_owner, record.last_owner.map(token)),
        (&*names.failed_attempts, count(record.failed_attempts.into())),
        (&*names.lost_attempts, count(record.lost_attempts.into())),
        (&*names.consecutive_losses, count(record.consecutive_losses.into())),
        (&*names.fence, count(record.fence)),
        (&*names.error, record.error_type.as_deref().map(text)),
        (&*names.application, record.application.as_deref().map(text)),
        (&*names.steps, record.steps.as_deref().map(text)),
        (&*names.outbox, record.outbox.as_deref().map(text)),
        (&*names.payload, record.payload.as_deref().map(text)),
        (&*names.unfinished, shard_of(key, record)),
    ]
}

/// The whole item.
pub(crate) fn encode(names: &Attributes, key: &Key, record: &IdempotencyRecord) -> Item {
    // So that the map does not grow step by step.
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
    // Of at most 2048 bytes, as every partition key.
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

fn value_size(value: &AttributeValue) -> usize {
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
    /// What is wrong with it; never its value.
    pub(crate) problem: &'static str,
}

/// Reads an item of this or another library.
pub(crate) fn decode(names: &Attributes, item: &Item) -> Result<IdempotencyRecord, Corrupt> {
    let read = Reader { item };
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
    record.provenance = item.get(names.provenance.as_ref()).and_then(provenance::read);
    record.steps = read.text(&names.steps)?.map(Into::into);
    record.outbox = read.text(&names.outbox)?.map(Into::into);
    record.payload = read.text(&names.payload)?.map(Into::into);
    if let Some(value) = item.get(names.data.as_ref()) {
        let text = data::json_text(names.data_form, value);
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

struct Reader<'i> {
    item: &'i Item,
}

impl<'i> Reader<'i> {
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
#[path = "item_tests.rs"]
mod tests;
