//! An operation whose expressions are compiled.

use std::sync::Arc;

use lambda_idempotency_core::policy::{OnConflict, Policy};
use lambda_idempotency_engine::batch::{Job, Pace, Returned};
use lambda_idempotency_keys::{FieldSet, KeyFormat, KeyPath, View, producer::Selector};

/// An operation whose expressions are compiled.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    pub(crate) key: Option<Selector>,
    /// The whole payload, used if there is neither a key nor an identity.
    pub(crate) whole: Selector,
    pub(crate) fingerprint: Option<Selector>,
    /// The fields that the key and the fingerprint read.
    pub(crate) field_sets: ReadFields,
    pub(crate) key_format: KeyFormat,
    /// With `on_conflict`, if that is set.
    pub(crate) policy: Policy,
    /// For sources, which have defaults of their own.
    pub(crate) on_conflict: Option<OnConflict>,
    pub(crate) on_missing_key: OnMissingKey,
    pub(crate) pace: Pace,
}

impl Prepared {
    /// Whether the operation has a key of its own.
    pub(crate) const fn names_key(&self) -> bool {
        self.key.is_some()
    }

    /// Whether it makes keys as Powertools does.
    pub(crate) fn is_of_powertools(&self) -> bool {
        self.key.as_ref().is_some_and(Selector::is_of_powertools)
    }

    /// Whether the key or the fingerprint is read from the payload, as JSON.
    pub(crate) fn reads_payload(&self) -> bool {
        let mut selectors = self.key.iter().chain(&self.fingerprint);
        selectors.any(|selector| selector.view == View::Payload && selector.reads_json())
    }

    /// The key's expression and what it is applied to; `None` for the default key.
    pub(crate) fn key_path(&self) -> Option<KeyPath> {
        self.key.as_ref().map(|key| KeyPath::new(key.view, &*key.text))
    }

    /// A handler whose result is kept as the library whose keys these are keeps it.
    pub(crate) fn keeping<'j>(&'j self, job: Job<'j>) -> Job<'j> {
        if !self.is_of_powertools() {
            return job;
        }
        Box::new(move |call| {
            let running = job(call);
            Box::pin(async move {
                Ok(match running.await? {
                    Returned::Value(json) => Returned::Value(self.kept(json.to_string()).into()),
                    other => other,
                })
            })
        })
    }

    /// A result as the library whose keys these are keeps it.
    pub(crate) fn kept(&self, json: String) -> String {
        match &self.key {
            Some(key) => key.result(json),
            None => json,
        }
    }
}

/// The fields that expressions read: in the payload, and in the record around it.
#[derive(Debug)]
pub(crate) struct ReadFields([FieldSet; 2]);

impl ReadFields {
    pub(super) fn of(selectors: &[Option<&Selector>]) -> Self {
        let reads = |view| {
            let selectors = selectors.iter().flatten().filter(|selector| selector.view == view);
            FieldSet::of(selectors.filter_map(|selector| selector.expression()))
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

/// The treatment of a record in which the key expression finds no key or, without an expression, that has no default key.
///
/// None is acknowledged without a call of the handler, since a mistake in the expression would lose them all. Records that
/// are not for this function are left out by the event source mapping (`FilterCriteria`), the subscription or the rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnMissingKey {
    /// The record fails and returns to its source; a caller gets an error.
    #[default]
    Return,
    /// The handler runs, without protection against duplicates.
    RunUnprotected,
}
