//! DocumentDB change streams: a batch of changes, in order. If the invocation returns an error, the
//! whole batch is delivered again, until it succeeds or the changes have expired.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-documentdb.html>

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use super::{
    contract::{About, EventSource},
    event::Event,
    filter::Kind,
    record::{Member, Record, id, json_object, list, named, object, record_id, text},
    settings::{KeepOrder, Settings, source},
};
use crate::rejection::Rejection;

source! {
    /// Changes of a DocumentDB change stream, in order for each document; the payload is the change event, as MongoDB writes
    /// it.
    DocumentDb => DocumentDbEvents; payload batches ordered
}

/// # Which records
impl DocumentDb {
    /// Takes only changes of this cluster, by its name or ARN. Default: all clusters.
    pub fn cluster(mut self, cluster: impl Into<String>) -> Self {
        self.0.only_from(Kind::Cluster, cluster.into());
        self
    }
}

const NAME: &str = "documentdb";

json_object!(struct Delivered { event });

// A change event as MongoDB writes it.
json_object!(struct Change { token: "_id", ns, key: "documentKey" });
json_object!(struct ResumeToken { data: "_data" });
json_object!(struct Namespace { db, coll });

impl EventSource for DocumentDbEvents {
    fn about(&self) -> &'static About {
        &About {
            name: NAME,
            identity: "cluster ARN, database, collection, resume token (`_id._data`)",
            catches: "everything that Lambda delivers again, always with its whole batch",
            misses: "a writer that writes the same change twice",
            volatile: &[],
            is_cause_of_invocation: false,
        }
    }

    fn recognises(&self, event: &Event<'_>, settings: &Settings) -> bool {
        text(event.outside.event_source).is_some_and(|source| source == "aws:docdb")
            && list(event.outside.events).is_some()
            && settings.takes(&[(Kind::Cluster, text(event.outside.arn).as_deref())])
    }

    /// Changes of one document are in one order group. An event that is not a change of a document
    /// (a collection is dropped or renamed) concerns all documents: then the whole batch is
    /// processed in order, unless `KeepOrder::None` is set.
    fn records<'e>(&self, event: &Event<'e>, settings: &Settings) -> Vec<Record<'e>> {
        let cluster = id(event.outside.arn);
        let events = list(event.outside.events).unwrap_or_default();
        let changes = events.into_iter().map(|raw| (raw, object::<Delivered<'_>>(Some(raw)).event));
        let changes: Vec<(_, _, Change<'_>)> =
            changes.map(|(raw, event)| (raw, event, object(event))).collect();
        let are_documents = changes.iter().all(|(_, _, change)| change.key.is_some());
        let order = match settings.order {
            Some(KeepOrder::None) => KeepOrder::None,
            Some(KeepOrder::Shard) => KeepOrder::Shard,
            Some(KeepOrder::Key) | None if are_documents => KeepOrder::Key,
            Some(KeepOrder::Key) | None => KeepOrder::Shard,
        };
        let read = |(raw, event, change)| read(raw, event, &change, cluster.as_ref(), order);
        changes.into_iter().map(read).collect()
    }
}

fn read<'e>(
    raw: &'e RawValue,
    event: Member<'e>,
    change: &Change<'e>,
    cluster: Option<&Cow<'e, str>>,
    order: KeepOrder,
) -> Record<'e> {
    let token = id(object::<ResumeToken<'_>>(change.token).data);
    let namespace: Namespace<'_> = object(change.ns);
    let [db, collection] =
        [namespace.db, namespace.coll].map(|part| text(part).unwrap_or_default());
    let group = match (order, change.key) {
        (KeepOrder::None, _) => None,
        (KeepOrder::Key, Some(key)) => Some(format!("{db}\0{collection}\0{}", same_text(key))),
        (KeepOrder::Key | KeepOrder::Shard, _) => Some(String::new()),
    };
    let payload = event.map(|event| Cow::Borrowed(event.get()));
    let record = record_id(NAME, token.as_deref(), cluster.map_or("", |arn| arn));
    Record {
        identity: match (cluster, token) {
            (None, _) => Err(Rejection::NoIdentity("eventSourceArn")),
            (_, None) => Err(Rejection::NoIdentity("event._id._data")),
            // A change of a whole database has no collection.
            (Some(cluster), Some(token)) => {
                Ok(vec![Cow::Borrowed(NAME), cluster.clone(), db, collection, token])
            }
        },
        group: group.map(Arc::from),
        ..Record::new(record, raw, payload.ok_or(Rejection::NoMember("event")))
    }
}

/// The same text for the same document, independent of the order and the spaces in its key. Not by way of
/// `serde_json::Value`, which other crates of the program can change.
fn same_text(key: &RawValue) -> String {
    if let Some(mut members) = named(Some(key)) {
        members.sort_by(|(one, _), (other, _)| one.cmp(other));
        let members =
            members.into_iter().map(|(name, value)| format!("{name:?}:{}", same_text(value)));
        return format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    }
    if let Some(items) = list(Some(key)) {
        return format!("[{}]", items.into_iter().map(same_text).collect::<Vec<_>>().join(","));
    }
    text(Some(key)).map_or_else(|| key.get().to_owned(), |text| format!("{text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_one_text_however_its_key_is_written() {
        let of = |key: &str| same_text(serde_json::from_str(key).unwrap());
        let one = of(r#"{"_id":{"$oid":"a"},"n":[1,"b"]}"#);
        assert_eq!(one, of(r#"{ "n" : [ 1, "\u0062" ], "\u005fid": { "$oid": "a" } }"#));
        for other in [
            r#"{"_id":{"$oid":"b"},"n":[1,"b"]}"#,
            r#"{"_id":{"$oid":"a"},"n":["1","b"]}"#,
            r#"{"_id":{"$oid":"a"},"n":[1,"b",1e999]}"#,
            r#"{"_id":{"$oid":"a"}}"#,
        ] {
            assert_ne!(one, of(other), "{other}");
        }
    }
}
