//! Refuses keys that differ on each delivery of a record, and so never recognise a duplicate.

use lambda_idempotency_keys::{View, producer::ExpressionUse};

use super::Operation;
use crate::{error::ConfigError, source::Source};

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
