//! Powertools keys, fingerprints and results, with the expressions compiled.

use std::sync::Arc;

use lambda_idempotency_core::record::Fingerprint;
use lambda_idempotency_engine::batch::{Job, Returned};
#[cfg(feature = "http")]
use lambda_idempotency_keys::Collision;
use lambda_idempotency_keys::{
    Expression, Key, KeyPath, Selection, SelectionError, Shape, View,
    external::{ExternalExpression, ExternalKeys},
    producer::{CompiledPath, ExpressionUse},
};

use crate::rejection::Rejection;

/// Powertools keys with their expressions compiled.
#[derive(Debug)]
pub(crate) struct CompiledPowertools {
    pub(super) powertools: Arc<dyn ExternalKeys>,
    pub(super) key: PowertoolsPath,
    pub(super) fingerprint: Option<PowertoolsPath>,
}

/// A compiled expression and what it is applied to.
pub(super) type PowertoolsPath = CompiledPath<Box<dyn ExternalExpression>>;

/// The text it is applied to: the payload, or the record around it.
const fn seen<'t>(path: &PowertoolsPath, (payload, record): (&'t str, &'t str)) -> &'t str {
    match path.view {
        View::Payload => payload,
        View::Record => record,
    }
}

impl CompiledPowertools {
    /// The expressions of the key and the fingerprint, with what each is applied to.
    pub(crate) fn paths(
        &self,
    ) -> impl Iterator<Item = (ExpressionUse, View, &str, &dyn ExternalExpression)> {
        let paths = [
            (ExpressionUse::Key, Some(&self.key)),
            (ExpressionUse::Fingerprint, self.fingerprint.as_ref()),
        ];
        paths.into_iter().filter_map(|(what, path)| {
            let CompiledPath { view, text, expression } = path?;
            Some((what, *view, &**text, &**expression))
        })
    }

    /// The key of a record and the selection that it is a hash of, from the payload and the record
    /// around it. The outer error means that the text cannot be parsed.
    pub(crate) fn key(
        &self,
        texts: (&str, &str),
        tenant: Option<&str>,
    ) -> Result<Result<(Key, Selection), SelectionError>, Rejection> {
        let made = self.key.expression.make_key(seen(&self.key, texts), tenant);
        made.map_err(Rejection::Payload)
    }

    /// Whether it makes no key for a tenant or caller, whatever the payload is.
    #[cfg(feature = "http")]
    pub(crate) fn refuses_tenants(&self) -> bool {
        let made = self.key.expression.make_key("{}", Some(""));
        matches!(made, Ok(Err(SelectionError::Collision(Collision::Tenant))))
    }

    /// The key's expression and what it is applied to.
    pub(crate) fn key_path(&self) -> KeyPath {
        KeyPath::new(self.key.view, &*self.key.text)
    }

    /// The structure of what the key and the fingerprint select; `None` where only Powertools can tell.
    pub(crate) fn shapes(&self) -> [Option<Shape>; 2] {
        [Some(&self.key), self.fingerprint.as_ref()]
            .map(|path| Some(Expression::compile(&path?.text).ok()?.shape()))
    }

    /// Whether it has a fingerprint.
    pub(crate) const fn has_fingerprint(&self) -> bool {
        self.fingerprint.is_some()
    }

    /// The key's expression.
    pub(crate) fn key_text(&self) -> Arc<str> {
        Arc::clone(&self.key.text)
    }

    /// The fingerprint of a record, if the operation has one.
    pub(crate) fn fingerprint(
        &self,
        texts: (&str, &str),
    ) -> Result<Option<Fingerprint>, Rejection> {
        let Some(path) = &self.fingerprint else { return Ok(None) };
        let made = path.expression.make_fingerprint(seen(path, texts));
        match made.map_err(Rejection::Payload)? {
            Ok(hash) => Ok(Some(Fingerprint::new(hash))),
            Err(error) => Err(Rejection::Fingerprint { expression: Arc::clone(&path.text), error }),
        }
    }

    /// A handler whose result is kept as Powertools would keep it.
    pub(crate) fn job<'j>(&'j self, job: Job<'j>) -> Job<'j> {
        Box::new(move |call| {
            let running = job(call);
            Box::pin(async move {
                Ok(match running.await? {
                    Returned::Value(json) => Returned::Value(self.result(json.to_string()).into()),
                    other => other,
                })
            })
        })
    }

    /// A result as Powertools would keep it.
    pub(crate) fn result(&self, json: String) -> String {
        self.powertools.result(&json).unwrap_or(json)
    }
}
