//! DynamoDB streams: the changes of one shard, in order. The response contains the checkpoint from
//! which they have to be delivered again.
//!
//! The payload is the change in plain JSON (see [`attributes`](super::attributes)):
//! `{"eventName":"MODIFY","keys":{..},"newImage":{..},"oldImage":{..}}`, with `userIdentity` if a
//! service made the change (an item's time to live expired).
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html>

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::value::RawValue;

use super::{
    attributes,
    contract::{About, EventSource, partial},
    event::Event,
    filter::Kind,
    record::{Item, Record, id, identity_of, json_object, object, record_id, text},
    settings::{KeepOrder, Settings, source},
    sink::RecordEnd,
};
use crate::{error::InvocationError, rejection::Rejection};

source! {
    /// Changes of a DynamoDB table, in order for each item; the payload is the change in plain JSON: `eventName`, `keys`,
    /// `newImage`, `oldImage`.
    ///
    /// Needs `FunctionResponseTypes: [ReportBatchItemFailures]`.
    DynamoDbStream => DynamoDbEvents; payload batches partial ordered
}

/// # Which records
impl DynamoDbStream {
    /// Takes only changes of this table, by its name or ARN, or by the ARN of its stream. Default: all tables.
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.0.only_from(Kind::Table, table.into());
        self
    }
}

const NAME: &str = "dynamodb";

json_object!(struct Delivered {
    id: "eventID", name: "eventName", stream: "eventSourceARN", user: "userIdentity", dynamodb,
});

json_object!(struct Change {
    keys: "Keys", new: "NewImage", old: "OldImage", sequence: "SequenceNumber",
});

impl EventSource for DynamoDbEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "stream ARN, eventID",
            catches: "everything that Lambda delivers again: changes behind a checkpoint, halves of \
                      a batch, whole batches",
            misses: "a writer that writes the same change twice, where that changes the item",
            volatile: &[],
            is_cause_of_invocation: false,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        event.delivers("aws:dynamodb", Kind::Table, settings)
    }

    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>> {
        event.records().iter().map(|raw| read(raw, settings)).collect()
    }

    /// A tumbling window's state is returned unchanged, because handlers keep their results
    /// elsewhere.
    fn respond(
        &self,
        event: &Event<'_>,
        records: &[Record<'_>],
        outcomes: &[RecordEnd],
    ) -> Result<Box<RawValue>, InvocationError> {
        partial(NAME, event.window_state(), records, outcomes)
    }
}

pub(super) fn read<'e>(raw: &'e RawValue, settings: &Settings) -> Record<'e> {
    let delivered: Delivered<'_> = object(Some(raw));
    let change: Change<'_> = object(delivered.dynamodb);
    let stream = text(delivered.stream);
    let sequence = id(change.sequence);
    let group = match settings.order {
        Some(KeepOrder::Shard) => Some(String::new()),
        Some(KeepOrder::None) => None,
        _ => Some(change.keys.map(item_key).unwrap_or_default()),
    };
    let payload = payload(&delivered, &change).map(Cow::Owned);
    let record = record_id(NAME, sequence.as_deref(), stream.as_deref().unwrap_or_default());
    Record {
        identity: identity_of(NAME, [("eventSourceARN", stream), ("eventID", text(delivered.id))]),
        item: sequence.map(|sequence| Item::Id(sequence.into_owned())),
        group: group.map(Arc::from),
        ..Record::new(record, raw, payload)
    }
}

/// The same text for the same item, independent of the order and the spaces in its key.
fn item_key(keys: &RawValue) -> String {
    type Keys<'e> = BTreeMap<String, BTreeMap<String, String>>;
    let parsed: Option<Keys<'_>> = serde_json::from_str(keys.get()).ok();
    parsed.map_or_else(|| keys.get().to_owned(), |keys| format!("{keys:?}"))
}

fn payload(delivered: &Delivered<'_>, change: &Change<'_>) -> Result<String, Rejection> {
    if !delivered.dynamodb.is_some_and(|change| change.get().starts_with('{')) {
        return Err(Rejection::NoMember("dynamodb"));
    }
    let name = delivered.name.ok_or(Rejection::NoMember("eventName"))?;
    let mut payload = format!(r#"{{"eventName":{}"#, name.get());
    for (name, found, image) in [
        ("keys", "dynamodb.Keys", change.keys),
        ("newImage", "dynamodb.NewImage", change.new),
        ("oldImage", "dynamodb.OldImage", change.old),
    ] {
        let Some(image) = image else { continue };
        payload.push_str(&format!(r#","{name}":"#));
        attributes::plain(image, &mut payload).ok_or(Rejection::NoMember(found))?;
    }
    if let Some(user) = delivered.user {
        payload.push_str(&format!(r#","userIdentity":{}"#, user.get()));
    }
    payload.push('}');
    Ok(payload)
}
