//! Refuses keys that differ on each delivery of a record, and so never recognise a duplicate; warns
//! of keys that are the same for several changes.

use lambda_idempotency_keys::{View, producer::ExpressionUse};

use super::Operation;
use crate::{
    envelope::Envelope,
    error::ConfigError,
    source::{S3, Source},
};

impl Operation {
    /// Refuses a key or a fingerprint that contains a value that differs on each delivery from this
    /// source: no duplicate would be recognised, or each would be a mismatch. Logs a warning if it
    /// only may contain such a value.
    pub(crate) fn refuse_volatile(&self, source: &dyn Source) -> Result<(), ConfigError> {
        let prepared = self.prepared()?;
        for (what, path) in [
            (ExpressionUse::Key, &prepared.key),
            (ExpressionUse::Fingerprint, &prepared.fingerprint),
        ] {
            let Some(path) = path else { continue };
            let (expression, view) = (&path.expression, path.view);
            self.check_volatile(source, (what, expression.as_str(), view), |member| {
                expression.selects(member)
            })?;
            for member in self.volatile(source, view).filter(|member| expression.looks_at(member)) {
                tracing::warn!(
                    operation = self.name(),
                    expression = expression.as_str(),
                    "the {what} expression reads `{member}`, which differs on each delivery from \
                     {}; use values that stay the same",
                    source.name()
                );
            }
        }
        for (what, view, text, expression) in prepared.powertools.iter().flat_map(|s| s.paths()) {
            self.check_volatile(source, (what, text, view), |member| expression.selects(member))?;
        }
        Ok(())
    }

    /// Logs a warning if the key is the same for several changes of an item, a document or an
    /// object: only the first of them would be processed.
    pub(crate) fn warn_of_shared_changes(&self, source: &dyn Source) -> Result<(), ConfigError> {
        let prepared = self.prepared()?;
        let Some(path) = &prepared.key else { return Ok(()) };
        let view = if self.whole_record { View::Record } else { path.view };
        let reads = path.expression.reads();
        let changes = match view {
            View::Payload if self.envelopes.contains(&Envelope::S3) => {
                S3.changes(self, view, &reads)
            }
            _ => source.changes(self, view, &reads),
        };
        let values = path.expression.value_paths();
        if let Some(changes) = changes.filter(|changes| !changes.are_told_apart_by(&values)) {
            tracing::warn!(
                operation = self.name(),
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
        Ok(())
    }

    /// The members that differ on each delivery and that the expression can read. With
    /// `whole_record`, the payload has the record's members.
    fn volatile(&self, source: &dyn Source, view: View) -> impl Iterator<Item = &'static str> {
        let sees_record = view == View::Record || self.whole_record;
        source.volatile(self).iter().copied().filter(move |_| sees_record)
    }

    fn check_volatile(
        &self,
        source: &dyn Source,
        (what, expression, view): (ExpressionUse, &str, View),
        selects: impl Fn(&str) -> bool,
    ) -> Result<(), ConfigError> {
        match self.volatile(source, view).find(|member| selects(member)) {
            None => Ok(()),
            Some(member) => Err(ConfigError::Volatile {
                operation: self.shared_name(),
                what,
                expression: expression.to_owned(),
                source_name: source.name(),
                member,
            }),
        }
    }
}
