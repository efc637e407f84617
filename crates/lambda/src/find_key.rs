//! Turns a source's record into a delivery: finds the key and decodes the payload.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_engine::{
    batch::{Delivery, Job, Work},
    call::RecordId,
    delivered::Delivered,
};
use lambda_idempotency_keys::{
    Document, DocumentError, Key, Scope, Selection, SelectionError, View, producer::Selector,
};
use serde_json::Value;

use crate::{
    operation::{ReadFields, OnMissingKey, Prepared},
    rejection::Rejection,
    source::{Record, Settings},
};

/// Finds the keys of records for one operation and tenant.
pub(crate) struct Extraction<'a> {
    pub(crate) operation: &'a Prepared,
    pub(crate) tenant: Option<&'a str>,
}

/// The key of a record, and what tells it apart from others that have this key.
pub(crate) struct Keyed {
    pub(crate) key: Key,
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl Keyed {
    /// Of the record's work, if it has a key.
    pub(crate) fn of(work: &Work<'_>) -> Option<Self> {
        match work {
            Work::Keyed { key, fingerprint, .. } => {
                Some(Self { key: key.clone(), fingerprint: fingerprint.clone() })
            }
            Work::Unprotected { .. } | Work::Reject(_) => None,
        }
    }
}

/// The texts that a key is selected from.
pub(crate) struct Texts<'w> {
    pub(crate) payload: &'w str,
    pub(crate) record: &'w str,
    /// The record's own identity, or why it has none. `None` if there is no record; then the
    /// default key is the whole payload.
    pub(crate) identity: Option<Result<Vec<&'w str>, Rejection>>,
}

/// A record's texts. Each is parsed at most once, and only the fields that expressions read.
struct Views<'a> {
    payload: &'a str,
    record: &'a str,
    /// `None` if the whole payload is the key and has to be parsed completely.
    field_sets: Option<&'a ReadFields>,
    parsed: [Option<Result<Document, DocumentError>>; 2],
}

/// A key, and what an expression selected for it, if one did.
type Found = (Key, Option<Selection>);

/// A record's key and its parts, for [`inspect`](crate::keys::inspect).
pub(crate) struct Inspected {
    pub(crate) key: Key,
    pub(crate) selection: Option<Selection>,
    /// The selected values, by the names of the parts or by the expression.
    pub(crate) parts: Vec<(String, Value)>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl<'a> Extraction<'a> {
    /// The work for a record, without its payload. `job` makes the handler's call from the payload.
    pub(crate) fn work_of<'w>(
        &self,
        record: &Record<'_>,
        job: impl FnOnce(&str) -> Result<Job<'w>, Rejection>,
    ) -> Work<'w> {
        let work = match &record.payload {
            Ok(payload) => self.keyed(&record.id, record.texts(payload), job),
            Err(rejection) => Err(rejection.clone()),
        };
        work.unwrap_or_else(|rejection| Work::Reject(rejection.into()))
    }

    /// Drops the payloads that nothing compares any more: those of records whose key no other record of the event has. A
    /// large event has as many bytes of them as it has itself.
    pub(crate) fn forget_payloads(records: &mut [Record<'_>], works: &[Work<'_>]) {
        if records.len() < 2 {
            return;
        }
        let mut times = HashMap::with_capacity(works.len());
        let keys = || works.iter().map(Work::key);
        for key in keys().flatten() {
            *times.entry(key).or_insert(0_usize) += 1;
        }
        for (record, key) in records.iter_mut().zip(keys()) {
            if key.is_some_and(|key| times.get(key) == Some(&1)) {
                record.payload = Ok(Cow::Borrowed(""));
            }
        }
    }

    /// Turns a record and its work into a delivery.
    pub(crate) fn delivery(
        record: &'a Record<'a>,
        delivered: Delivered,
        work: Work<'a>,
        settings: &Settings,
    ) -> Delivery<'a> {
        let work = match &record.payload {
            Ok(payload) => work.with_payload(payload),
            Err(_) => work,
        };
        let sink = match work {
            Work::Reject(_) => &settings.bad_records,
            _ => &settings.failures,
        };
        Delivery {
            lets_pass: sink.is_some(),
            record: record.id.clone(),
            delivered,
            group: record.group.clone(),
            receives: record.receives.unwrap_or(0),
            work,
        }
    }

    /// The id of a record for its sink, the same at each delivery. It contains the content *and* the key with the fingerprint,
    /// or else the identity: a producer may give one id to different messages, and different messages may have one key.
    /// Without a key, an identity that AWS gave tells records apart; otherwise all of the record does, but for its `volatile`
    /// members.
    pub(crate) fn diverted_id(
        &self,
        record: &Record<'_>,
        key: Option<&Keyed>,
        volatile: &[&str],
    ) -> String {
        let RecordId { source, id, arn, .. } = &record.id;
        let stable;
        let mut parts = vec!["diverted"];
        parts.extend(record.content());
        match (key, &record.identity) {
            (Some(Keyed { key, fingerprint }), _) => {
                parts.push(key.as_str());
                parts.extend(fingerprint.as_ref().map(Fingerprint::as_str));
            }
            (None, identity) => {
                match identity {
                    Ok(identity) => parts.extend(identity.iter().map(|part| &**part)),
                    Err(_) => parts.extend([source, arn.as_deref().unwrap_or_default(), id]),
                }
                let is_chosen = record.id.label() != &*record.id.id;
                if identity.is_err() || is_chosen || record.content().is_none() {
                    stable = record.stable(volatile);
                    parts.push(&stable);
                }
            }
        }
        self.operation.key_format.identity(&self.scope(), &parts).hash().to_owned()
    }

    /// The work for a payload.
    pub(crate) fn work<'w>(
        &self,
        id: &RecordId,
        texts: Texts<'w>,
        job: impl FnOnce(&str) -> Result<Job<'w>, Rejection>,
    ) -> Work<'w> {
        let payload = texts.payload;
        match self.keyed(id, texts, job) {
            Ok(work) => work.with_payload(payload),
            Err(rejection) => Work::Reject(rejection.into()),
        }
    }

    /// Finds the key first, because for a record without a key that is the most helpful error. Then
    /// decodes, because a record that cannot be decoded must not claim its key. The work is without the payload.
    fn keyed<'w>(
        &self,
        id: &RecordId,
        texts: Texts<'_>,
        job: impl FnOnce(&str) -> Result<Job<'w>, Rejection>,
    ) -> Result<Work<'w>, Rejection> {
        let payload = texts.payload;
        let mut views = self.views(&texts);
        let (key, _) = match self.find(texts.identity, &mut views) {
            Ok(found) => found,
            Err(Missing::Reject(rejection)) => return Err(rejection),
            Err(Missing::RunUnprotected) => {
                let identity = self.without_key(id, payload);
                return Ok(Work::Unprotected { identity, job: job(payload)? });
            }
        };
        let fingerprint = self.fingerprint(&mut views)?;
        Ok(Work::Keyed { key, fingerprint, payload: "", job: job(payload)? })
    }

    /// The key of a record and its parts, for [`inspect`](crate::keys::inspect).
    pub(crate) fn inspect(&self, texts: Texts<'_>) -> Result<Inspected, Missing> {
        let mut views = self.views(&texts);
        let (key, selection) = self.find(texts.identity, &mut views)?;
        let fingerprint = self.fingerprint(&mut views).map_err(Missing::Reject)?;
        let parts = match &self.operation.key {
            Some(selector) => views.parts(selector).map_err(Missing::Reject)?,
            None => Vec::new(),
        };
        Ok(Inspected { key, selection, parts, fingerprint })
    }

    fn views<'v>(&'v self, texts: &Texts<'v>) -> Views<'v> {
        let is_whole = self.operation.key.is_none() && texts.identity.is_none();
        Views {
            payload: texts.payload,
            record: texts.record,
            field_sets: (!is_whole).then_some(&self.operation.field_sets),
            parsed: [None, None],
        }
    }

    fn find(
        &self,
        identity: Option<Result<Vec<&str>, Rejection>>,
        views: &mut Views<'_>,
    ) -> Result<Found, Missing> {
        match (&self.operation.key, identity) {
            (Some(selector), _) => self.select(selector, views),
            (None, None) => self.select(&self.operation.whole, views),
            (None, Some(Ok(identity))) => {
                Ok((self.operation.key_format.identity(&self.scope(), &identity), None))
            }
            (None, Some(Err(rejection))) => Err(self.missing(rejection)),
        }
    }

    fn select(&self, selector: &Selector, views: &mut Views<'_>) -> Result<Found, Missing> {
        let text = views.text(selector.view);
        let form = (&self.operation.key_format, &self.scope());
        let made = selector.key(text, || views.document(selector.view), form);
        match made.map_err(|error| Missing::Reject(Rejection::Payload(error)))? {
            Ok((key, selection)) => Ok((key, Some(selection))),
            Err(error) => Err(self.no_key(Arc::clone(&selector.text), error)),
        }
    }

    /// What happens to a record in which the expression finds no key.
    fn no_key(&self, expression: Arc<str>, error: SelectionError) -> Missing {
        let is_missing = error.is_missing();
        let rejection = Rejection::Key { expression, error };
        if is_missing { self.missing(rejection) } else { Missing::Reject(rejection) }
    }

    fn missing(&self, rejection: Rejection) -> Missing {
        match self.operation.on_missing_key {
            OnMissingKey::RunUnprotected => Missing::RunUnprotected,
            OnMissingKey::Return => Missing::Reject(rejection),
        }
    }

    /// Identifies a record without a key: by its id, if it has one, and by its content.
    pub(crate) fn without_key(&self, id: &RecordId, content: &str) -> Key {
        let RecordId { source, id, arn, .. } = id;
        let parts = ["without a key", source, arn.as_deref().unwrap_or_default(), id, content];
        self.operation.key_format.identity(&self.scope(), &parts)
    }

    fn scope(&self) -> Scope<'_> {
        Scope { operation: &self.operation.name, tenant: self.tenant }
    }

    fn fingerprint(&self, views: &mut Views<'_>) -> Result<Option<Fingerprint>, Rejection> {
        let Some(selector) = &self.operation.fingerprint else { return Ok(None) };
        let text = views.text(selector.view);
        let format = &self.operation.key_format;
        let made = selector.fingerprint(text, || views.document(selector.view), format);
        match made.map_err(Rejection::Payload)? {
            Ok(hash) => Ok(Some(Fingerprint::new(hash))),
            Err(error) => {
                Err(Rejection::Fingerprint { expression: Arc::clone(&selector.text), error })
            }
        }
    }
}

impl Record<'_> {
    /// The texts that its key is selected from.
    pub(crate) fn texts<'w>(&'w self, payload: &'w str) -> Texts<'w> {
        let identity = match &self.identity {
            Ok(parts) => Ok(parts.iter().map(|part| &**part).collect()),
            Err(rejection) => Err(rejection.clone()),
        };
        Texts { payload, record: &self.raw, identity: Some(identity) }
    }
}

/// What happens to a record without a key.
pub(crate) enum Missing {
    Reject(Rejection),
    RunUnprotected,
}

impl<'a> Views<'a> {
    /// The selected values, part by part; a missing part is `null`. Only of an expression of this library.
    fn parts(&mut self, selector: &Selector) -> Result<Vec<(String, Value)>, Rejection> {
        let Some(expression) = selector.expression() else { return Ok(Vec::new()) };
        let document = self.document(selector.view).map_err(Rejection::Payload)?;
        let selected = expression
            .evaluate(document)
            .map_err(|error| Rejection::Key { expression: Arc::clone(&selector.text), error })?;
        let names = expression.parts();
        Ok(match selected {
            Value::Array(items) if !names.is_empty() => names.into_iter().zip(items).collect(),
            Value::Object(mut members) if !names.is_empty() => names
                .into_iter()
                .map(|name| {
                    let member = members.remove(&name).unwrap_or_default();
                    (name, member)
                })
                .collect(),
            whole => vec![(expression.as_str().to_owned(), whole)],
        })
    }

    /// The text of this view.
    const fn text(&self, view: View) -> &'a str {
        match view {
            View::Payload => self.payload,
            View::Record => self.record,
        }
    }

    /// The text of this view, parsed at the first call.
    fn document(&mut self, view: View) -> Result<&Document, DocumentError> {
        let text = self.text(view);
        let [payload, record] = &mut self.parsed;
        let parsed = match view {
            View::Payload => payload,
            View::Record => record,
        };
        let read = || match self.field_sets {
            Some(field_sets) => Document::read(text, field_sets.at(view)),
            None => Document::parse(text),
        };
        parsed.get_or_insert_with(read).as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
#[path = "find_key_tests.rs"]
mod tests;
