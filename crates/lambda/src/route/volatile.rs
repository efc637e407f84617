//! Refuses keys that differ on each delivery of a record, and so never recognise a duplicate; warns
//! of keys that are the same for several changes.

use lambda_idempotency_keys::{View, producer::ExpressionUse};

use super::Route;
use crate::{
    error::ConfigError,
    source::{Envelope, EventSource as _, S3Events},
};

impl Route {
    /// Refuses a key or a fingerprint that contains a value that differs on each delivery from this
    /// source: no duplicate would be recognised, or each would be a mismatch. Logs a warning if it
    /// only may contain such a value.
    pub(super) fn refuse_volatile(&self) -> Result<(), ConfigError> {
        let prepared = &self.prepared;
        for (what, path) in [
            (ExpressionUse::Key, &prepared.key),
            (ExpressionUse::Fingerprint, &prepared.fingerprint),
        ] {
            let Some(path) = path else { continue };
            let (expression, view) = (&path.expression, path.view);
            self.check_volatile((what, expression.as_str(), view), |member| {
                expression.selects(member)
            })?;
            for member in self.volatile(view).filter(|member| expression.looks_at(member)) {
                tracing::warn!(
                    operation = self.operation.name(),
                    expression = expression.as_str(),
                    "the {what} expression reads `{member}`, which differs on each delivery from \
                     {}; use values that stay the same",
                    self.source.name()
                );
            }
        }
        for (what, view, text, expression) in prepared.powertools.iter().flat_map(|s| s.paths()) {
            self.check_volatile((what, text, view), |member| expression.selects(member))?;
        }
        Ok(())
    }

    /// Logs a warning if the key is the same for several changes of an item, a document or an
    /// object: only the first of them would be processed.
    pub(super) fn warn_of_shared_changes(&self) {
        let Some(path) = &self.prepared.key else { return };
        let view = if self.settings.whole_record { View::Record } else { path.view };
        let reads = path.expression.reads();
        let changes = match view {
            View::Payload if self.settings.envelopes.contains(&Envelope::S3) => {
                S3Events.changes(&self.settings, view, &reads)
            }
            _ => self.source.changes(&self.settings, view, &reads),
        };
        let values = path.expression.value_paths();
        if let Some(changes) = changes.filter(|changes| !changes.are_told_apart_by(&values)) {
            tracing::warn!(
                operation = self.operation.name(),
                expression = path.expression.as_str(),
                "the key can be the same for several changes of one {thing}, or for two {thing}s: \
                 only the first change is processed then, and the others are acknowledged as \
                 duplicates; leave the key out, or name the {thing} and its change, such as \
                 `.key({instead})`{but}",
                thing = changes.thing,
                instead = changes.instead,
                but = changes.but,
            );
        }
    }

    /// The members that differ on each delivery and that the expression can read. With
    /// `whole_record`, the payload has the record's members.
    fn volatile(&self, view: View) -> impl Iterator<Item = &'static str> {
        let sees_record = view == View::Record || self.settings.whole_record;
        self.source.volatile(&self.settings).iter().copied().filter(move |_| sees_record)
    }

    fn check_volatile(
        &self,
        (what, expression, view): (ExpressionUse, &str, View),
        selects: impl Fn(&str) -> bool,
    ) -> Result<(), ConfigError> {
        match self.volatile(view).find(|member| selects(member)) {
            None => Ok(()),
            Some(member) => {
                let (name, source) = (self.operation.name(), self.source.name());
                Err(ConfigError::key(format!(
                    "the {what} of operation `{name}` does not recognise redeliveries: `{expression}` contains `{member}`, \
                     which differs each time {source} delivers a record; use values that stay the same, such as a part of \
                     the payload or the record's id"
                )))
            }
        }
    }
}
