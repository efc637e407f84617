//! DocumentDB change streams: a batch of changes, in order. If the invocation returns an error, the
//! whole batch is delivered again, until it succeeds or the changes have expired.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/with-documentdb.html>

use std::{borrow::Cow, sync::Arc};

use lambda_idempotency_keys::View;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Changes, Event, EventSource, Identity, KeepOrder, Record, Settings,
    event::{Member, id, list, object, text},
    filter::Kind,
    record::record_id,
    setters::source,
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

/// Reads its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentDbEvents;

const NAME: &str = "documentdb";

#[derive(Default, Deserialize)]
struct Delivered<'e> {
    #[serde(borrow, default)]
    event: Member<'e>,
}

/// A change event as MongoDB writes it.
#[derive(Default, Deserialize)]
struct Change<'e> {
    #[serde(rename = "_id", borrow, default)]
    token: Member<'e>,
    #[serde(borrow, default)]
    ns: Member<'e>,
    #[serde(rename = "documentKey", borrow, default)]
    key: Member<'e>,
}

#[derive(Default, Deserialize)]
struct ResumeToken<'e> {
    #[serde(rename = "_data", borrow, default)]
    data: Member<'e>,
}

#[derive(Default, Deserialize)]
struct Namespace<'e> {
    #[serde(borrow, default)]
    db: Member<'e>,
    #[serde(borrow, default)]
    coll: Member<'e>,
}

impl EventSource for DocumentDbEvents {
    fn name(&self) -> &'static str {
        NAME
    }

    fn identity(&self) -> &'static Identity {
        &Identity {
            parts: "cluster ARN, database, collection, resume token (`_id._data`)",
            catches: "everything that Lambda delivers again, always with its whole batch",
            misses: "a writer that writes the same change twice",
        }
    }

    fn changes(&self, _: &Settings, view: View, _: &[String]) -> Option<&'static Changes> {
        const THING: &str = "document";
        Some(match view {
            View::Record => &Changes {
                alone: &["event._id"],
                together: &[
                    &["event.documentKey", "event.fullDocument"],
                    &["event.fullDocument", "event.updateDescription"],
                ],
                thing: THING,
                instead: "\"[ns, _id]\"",
                but: "",
            },
            View::Payload => &Changes {
                alone: &["_id"],
                together: &[
                    &["documentKey", "fullDocument"],
                    &["fullDocument", "updateDescription"],
                ],
                thing: THING,
                instead: "\"[ns, _id]\"",
                but: "",
            },
        })
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
        (KeepOrder::Key, Some(key)) => Some(format!("{db}\0{collection}\0{}", without_spaces(key))),
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

/// The same text for the same document, independent of the order and the spaces in its key.
fn without_spaces(key: &RawValue) -> String {
    serde_json::from_str::<serde_json::Value>(key.get())
        .map_or_else(|_| key.get().to_owned(), |key| key.to_string())
}
