//! Refuses keys that differ on each delivery of a record, and so never recognise a duplicate.

use lambda_idempotency_keys::{View, producer::ExpressionUse};

use super::Route;
use crate::error::ConfigError;

impl Route {
    /// Refuses a key or a fingerprint that can contain a value that differs on each delivery from this
    /// source: no duplicate would be recognised, or each would be a mismatch.
    pub(super) fn refuse_volatile(&self) -> Result<(), ConfigError> {
        let prepared = &self.prepared;
        for (what, selector) in [
            (ExpressionUse::Key, &prepared.key),
            (ExpressionUse::Fingerprint, &prepared.fingerprint),
        ] {
            let Some(selector) = selector else { continue };
            if let Some(member) = self.volatile(selector.view).find(|it| selector.reads(it)) {
                let (name, source) = (self.operation.name(), self.source.name());
                let expression = &selector.text;
                return Err(ConfigError::key(format!(
                    "the {what} of operation `{name}` does not recognise redeliveries: `{expression}` contains `{member}`, \
                     which differs each time {source} delivers a record; use values that stay the same, such as a part of \
                     the payload or the record's id"
                )));
            }
        }
        Ok(())
    }

    /// The members that differ on each delivery and that the expression can read. With
    /// `whole_record`, the payload has the record's members.
    fn volatile(&self, view: View) -> impl Iterator<Item = &'static str> {
        let sees_record = view == View::Record || self.settings.whole_record;
        self.source.volatile().iter().copied().filter(move |_| sees_record)
    }
}
