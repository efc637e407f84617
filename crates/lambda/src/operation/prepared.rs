//! An operation whose expressions are compiled.

use std::sync::Arc;

use lambda_idempotency_core::policy::{OnConflict, Policy};
use lambda_idempotency_engine::batch::Pace;
use lambda_idempotency_keys::{
    Expression, FieldSet, KeyFormat, KeyPath, View, producer::CompiledPath,
};

use super::{OnMissingKey, compiled_powertools::CompiledPowertools};

/// An operation whose expressions are compiled.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    pub(crate) key: Option<Path>,
    /// The whole payload, used if there is neither a key nor an identity.
    pub(crate) whole: Path,
    pub(crate) fingerprint: Option<Path>,
    /// The fields that the key and the fingerprint read.
    pub(crate) field_sets: FieldSets,
    pub(crate) key_format: KeyFormat,
    /// Replaces the key and the fingerprint if the operation has Powertools keys.
    pub(crate) powertools: Option<CompiledPowertools>,
    /// With `on_conflict`, if that is set.
    pub(crate) policy: Policy,
    /// For sources, which have defaults of their own.
    pub(crate) on_conflict: Option<OnConflict>,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) pace: Pace,
}

impl Prepared {
    /// Whether the operation has a key expression.
    pub(crate) const fn names_key(&self) -> bool {
        self.powertools.is_some() || self.key.is_some()
    }

    /// Whether the key or the fingerprint is read from the payload, as JSON.
    pub(crate) fn reads_payload(&self) -> bool {
        let own = self.key.iter().chain(&self.fingerprint).map(|path| path.view);
        let powertools = self.powertools.iter().flat_map(CompiledPowertools::paths);
        own.chain(powertools.map(|(_, view, ..)| view)).any(|view| view == View::Payload)
    }

    /// The key's expression and what it is applied to; `None` for the default key.
    pub(crate) fn key_path(&self) -> Option<KeyPath> {
        let own = |path: &Path| KeyPath::new(path.view, &*path.text);
        self.powertools
            .as_ref()
            .map(CompiledPowertools::key_path)
            .or_else(|| self.key.as_ref().map(own))
    }
}

/// A compiled expression and what it is applied to.
pub(crate) type Path = CompiledPath<Expression>;

/// The fields that expressions read: in the payload, and in the record around it.
#[derive(Debug)]
pub(crate) struct FieldSets([FieldSet; 2]);

impl FieldSets {
    pub(super) fn of(paths: &[Option<&Path>]) -> Self {
        let reads = |view| {
            let paths = paths.iter().copied().flatten().filter(|path| path.view == view);
            FieldSet::of(paths.map(|path| &path.expression))
        };
        Self([reads(View::Payload), reads(View::Record)])
    }

    pub(crate) const fn at(&self, view: View) -> &FieldSet {
        let [payload, record] = &self.0;
        match view {
            View::Payload => payload,
            View::Record => record,
        }
    }
}
