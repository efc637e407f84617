//! From a source's record to a delivery: decode the payload, find the key.

use std::sync::Arc;

use lambda_idempotency_core::{
    batch::{Delivery, Job, Work},
    key::{Digest, Document, Key, Scope, Selection, SelectionError, View},
    outcome::Rejection,
    policy::MissingKey,
    record::Fingerprint,
};

use crate::{
    operation::{Path, Prepared},
    source::Record,
};

/// What is needed to find the key of a record.
pub(crate) struct Extraction<'a> {
    pub(crate) operation: &'a Prepared,
    pub(crate) tenant: Option<&'a str>,
}

/// A record's texts, each parsed at most once.
struct Views<'a> {
    payload: &'a str,
    record: &'a str,
    parsed: [Option<Result<Document, Rejection>>; 2],
}

impl<'a> Extraction<'a> {
    /// Turns a record into a delivery. `job` makes the handler's call of a payload.
    pub(crate) fn delivery(
        &self,
        record: &'a Record<'a>,
        job: impl FnOnce(&str) -> Result<Job<'a>, Rejection>,
    ) -> Delivery<'a> {
        let work = match &record.payload {
            Ok(payload) => {
                let identity: Vec<&str> = record.identity.iter().map(|part| &**part).collect();
                self.work(payload, record.raw.get(), Some(&identity), job)
            }
            Err(rejection) => Work::Reject(rejection.clone()),
        };
        let (id, group) = (record.id.clone(), record.group.clone());
        Delivery { record: id, group, priority: 0, work }
    }

    /// What is to be done with a payload, the record around it, and the record's own identity; what
    /// has none is its whole payload.
    pub(crate) fn work<'w>(
        &self,
        payload: &'w str,
        record: &'w str,
        identity: Option<&[&str]>,
        job: impl FnOnce(&str) -> Result<Job<'w>, Rejection>,
    ) -> Work<'w> {
        self.keyed(payload, record, identity, job).unwrap_or_else(Work::Reject)
    }

    /// Looks for the key first, because a record without one is best told so; then decodes, because
    /// what cannot be processed must not claim a key.
    fn keyed<'w>(
        &self,
        payload: &'w str,
        record: &'w str,
        identity: Option<&[&str]>,
        job: impl FnOnce(&str) -> Result<Job<'w>, Rejection>,
    ) -> Result<Work<'w>, Rejection> {
        let mut views = Views { payload, record, parsed: [None, None] };
        let scope = Scope { operation: &self.operation.name, tenant: self.tenant };
        let found = match (&self.operation.key, identity) {
            (None, Some(identity)) => Ok(scope.identity(identity)),
            (None, None) => self.key(&scope, &self.operation.whole, &mut views),
            (Some(path), _) => self.key(&scope, path, &mut views),
        };
        let key = match found {
            Ok(key) => key,
            Err(Missing::Reject(rejection)) => return Err(rejection),
            Err(Missing::RunUnprotected) => return Ok(Work::Unprotected { job: job(payload)? }),
            Err(Missing::Skip) => return Ok(Work::Skip),
        };
        let fingerprint = self.fingerprint(&mut views)?;
        Ok(Work::Keyed { key, fingerprint, payload, job: job(payload)? })
    }

    fn key(&self, scope: &Scope<'_>, path: &Path, views: &mut Views<'_>) -> Result<Key, Missing> {
        let error = match views.select(path).map_err(Missing::Reject)? {
            Ok(selection) => return Ok(scope.key(&selection)),
            Err(error) => error,
        };
        let is_missing = matches!(
            error,
            SelectionError::Missing
                | SelectionError::Empty
                | SelectionError::PartMissing { .. }
                | SelectionError::PartEmpty { .. }
        );
        Err(match self.operation.policy.missing_key {
            MissingKey::RunUnprotected if is_missing => Missing::RunUnprotected,
            MissingKey::Skip if is_missing => Missing::Skip,
            _ => Missing::Reject(Rejection::Key { expression: path.text(), error }),
        })
    }

    fn fingerprint(&self, views: &mut Views<'_>) -> Result<Option<Fingerprint>, Rejection> {
        let Some(path) = &self.operation.fingerprint else { return Ok(None) };
        let selection = views
            .select(path)?
            .map_err(|error| Rejection::Fingerprint { expression: path.text(), error })?;
        let mut digest = Digest::new(b"lambda-idempotency fingerprint 1");
        digest.part(selection.canonical_bytes());
        Ok(Some(Fingerprint::new(digest.hex())))
    }
}

enum Missing {
    Reject(Rejection),
    RunUnprotected,
    Skip,
}

impl Views<'_> {
    /// The inner result is the expression's; the outer one whether there is anything to apply it to.
    fn select(&mut self, path: &Path) -> Result<Result<Selection, SelectionError>, Rejection> {
        let [payload, record] = &mut self.parsed;
        let (parsed, text) = match path.view {
            View::Payload => (payload, self.payload),
            View::Record => (record, self.record),
        };
        let parsed = parsed
            .get_or_insert_with(|| Document::parse(text).map_err(Rejection::Payload))
            .as_ref();
        Ok(path.expression.select(parsed.map_err(Clone::clone)?))
    }
}

impl Path {
    fn text(&self) -> Arc<str> {
        Arc::from(self.expression.as_str())
    }
}
