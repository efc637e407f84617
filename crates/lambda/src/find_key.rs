//! Finds the key of a record, and makes its work.

use std::sync::Arc;

use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_engine::{
    batch::{Job, Work},
    call::RecordId,
};
use lambda_idempotency_keys::{
    Document, DocumentError, Key, Scope, Selection, SelectionError, View, producer::Selector,
};
use serde_json::Value;

use crate::{
    operation::{OnMissingKey, Prepared, ReadFields},
    rejection::Rejection,
    source::Record,
};

/// Finds the keys of records for one operation and tenant.
pub(crate) struct Extraction<'a> {
    pub(crate) operation: &'a Prepared,
    pub(crate) tenant: Option<&'a str>,
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

/// A record's key and its parts, for [`inspect`](crate::keys::inspect).
pub(crate) struct Inspected {
    pub(crate) key: Key,
    pub(crate) selection: Option<Selection>,
    /// The selected values, by the names of the parts or by the expression.
    pub(crate) parts: Vec<(String, Value)>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl Extraction<'_> {
    /// The work for a payload; `job` makes the handler's call from it.
    pub(crate) fn work<'w>(
        &self,
        id: &RecordId,
        texts: Texts<'w>,
        job: impl FnOnce(&str) -> Result<Job<'w>, Rejection>,
    ) -> Work<'w> {
        self.work_or_rejection(id, texts, job)
            .unwrap_or_else(|rejection| Work::Reject(rejection.into()))
    }

    /// Finds the key first, because for a record without a key that is the most helpful error. Then
    /// decodes, because a record that cannot be decoded must not claim its key.
    fn work_or_rejection<'w>(
        &self,
        id: &RecordId,
        texts: Texts<'w>,
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
        Ok(Work::Keyed { key, fingerprint, payload, job: job(payload)? })
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
    ) -> Result<(Key, Option<Selection>), Missing> {
        match (&self.operation.key, identity) {
            (Some(selector), _) => self.select(selector, views),
            (None, None) => self.select(&self.operation.whole, views),
            (None, Some(Ok(identity))) => {
                Ok((self.operation.key_format.identity(&self.scope(), &identity), None))
            }
            (None, Some(Err(rejection))) => Err(self.missing(rejection)),
        }
    }

    fn select(
        &self,
        selector: &Selector,
        views: &mut Views<'_>,
    ) -> Result<(Key, Option<Selection>), Missing> {
        let text = views.text(selector.view);
        let form = (&self.operation.key_format, &self.scope());
        let made = selector.key(text, || views.document(selector.view), form);
        match made.map_err(|error| Missing::Reject(Rejection::Payload(error)))? {
            Ok((key, selection)) => Ok((key, Some(selection))),
            Err(error) => Err(self.no_key(Arc::clone(&selector.text), error)),
        }
    }

    /// Decides about a record in which the expression finds no key.
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

    pub(crate) fn scope(&self) -> Scope<'_> {
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

/// The fate of a record without a key.
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
