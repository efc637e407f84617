//! Compiles an operation, and refuses one that cannot work.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::policy::{Lease, OnPermanentFailure};
use lambda_idempotency_engine::batch::Pace;
use lambda_idempotency_keys::{
    Expression, View,
    producer::{Compiled, CompiledKeys, ExpressionUse, KeySpecError},
};

use super::{
    Operation,
    compiled_powertools::CompiledPowertools,
    prepared::{FieldSets, Path, Prepared},
};
use crate::{
    bad_record::OnBadRecord,
    envelope::Envelope,
    error::{ConfigError, SettingsMistake},
    on_missing_key::OnMissingKey,
};

/// With a shorter lease, most writes to the store would be renewals.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// The key of a worker that died stays held for the lease and both allowances.
const LONGEST_LEASE: Duration = Duration::from_hours(24);
const LONGEST_ALLOWANCE: Duration = Duration::from_hours(1);

impl Operation {
    pub(crate) fn prepared(&self) -> Result<Arc<Prepared>, ConfigError> {
        let prepare = || self.prepare().map(Arc::new).map_err(|error| self.with_variable(error));
        self.prepared.get_or_init(prepare).clone()
    }

    fn prepare(&self) -> Result<Prepared, ConfigError> {
        if self.policy.retention.is_zero() {
            return Err(ConfigError::Retention { operation: self.shared_name() });
        }
        self.check_lengths()?;
        self.check_filters()?;
        self.check_envelopes()?;
        if self.sink.is_some()
            && self.policy.on_permanent_failure == OnPermanentFailure::Acknowledge
        {
            let mistake = SettingsMistake::AcknowledgedAndDiverted;
            return Err(ConfigError::Settings { operation: self.shared_name(), mistake });
        }
        self.check_transaction()?;
        self.check_optimistic()?;
        self.check_mutex()?;
        let Compiled { operation, key_format, keys, .. } = self.compiled()?;
        let (key, fingerprint, powertools) = match keys {
            CompiledKeys::Own { key, fingerprint } => (key, fingerprint, None),
            CompiledKeys::External { library, key, fingerprint } => {
                (None, None, Some(CompiledPowertools { powertools: library, key, fingerprint }))
            }
        };
        if self.on_missing_key == OnMissingKey::Skip && key.is_none() && powertools.is_none() {
            return Err(ConfigError::SkipsWithoutKey { operation });
        }
        for warning in key.iter().flat_map(|path| path.expression.warnings()) {
            let expression = key.as_ref().map(|path| &*path.text);
            tracing::warn!(operation = &*operation, expression, "key expression: {warning}");
        }
        let mut policy = self.policy.clone();
        policy.on_conflict = self.on_conflict.unwrap_or(policy.on_conflict);
        Ok(Prepared {
            name: operation,
            field_sets: FieldSets::of(&[key.as_ref(), fingerprint.as_ref()]),
            key_format,
            key,
            whole: self.whole()?,
            fingerprint,
            powertools,
            policy,
            on_conflict: self.on_conflict,
            on_missing_key: self.on_missing_key,
            bad_records: match &self.bad_record {
                Some(OnBadRecord::Return) => None,
                Some(OnBadRecord::Divert(sink)) => Some(sink.clone()),
                None => self.sink.clone(),
            },
            sink: self.sink.clone(),
            pace: Pace::default(),
        })
    }

    fn check_lengths(&self) -> Result<(), ConfigError> {
        let lease = match self.policy.lease {
            Lease::Renewed { length } => length,
            _ => SHORTEST_LEASE,
        };
        let allowances = (Duration::ZERO, LONGEST_ALLOWANCE);
        let lengths = [
            ("lease", lease, (SHORTEST_LEASE, LONGEST_LEASE)),
            ("lease_grace", self.policy.lease_grace, allowances),
            ("clock_skew", self.policy.clock_skew, allowances),
        ];
        let is_out = |(_, length, (least, most)): &(_, Duration, (Duration, Duration))| {
            length < least || length > most
        };
        match lengths.into_iter().find(is_out) {
            Some((setting, length, (least, most))) => {
                let mistake = SettingsMistake::Length { setting, length, least, most };
                Err(ConfigError::Settings { operation: self.shared_name(), mistake })
            }
            None => Ok(()),
        }
    }

    /// Refuses envelopes with which every record would be a bad one.
    fn check_envelopes(&self) -> Result<(), ConfigError> {
        for (nth, inner) in self.envelopes.iter().enumerate() {
            let mut outside = self.envelopes.iter().take(nth);
            let wrong = outside.find(|outer| *outer == inner || **outer == Envelope::S3);
            if let Some(outer) = wrong {
                let mistake = SettingsMistake::Envelopes { outer: *outer, inner: *inner };
                return Err(ConfigError::Settings { operation: self.shared_name(), mistake });
            }
        }
        Ok(())
    }

    fn compiled(&self) -> Result<Compiled, ConfigError> {
        let spec = self.spec()?;
        let has_expression = spec.key_path().is_some() || self.fingerprint.is_some();
        if spec.has_functions() && spec.external().is_none() && !has_expression {
            return Err(ConfigError::Functions { operation: self.shared_name() });
        }
        Ok(spec.compile(self.fingerprint.as_ref())?)
    }

    /// The whole payload.
    fn whole(&self) -> Result<Path, ConfigError> {
        let (operation, what) = (self.shared_name(), ExpressionUse::Key);
        let expression = Expression::compile("@").map_err(|source| KeySpecError::Expression {
            operation,
            what,
            source,
        })?;
        Ok(Path { view: View::Payload, text: Arc::from("@"), expression })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_too_short_to_be_renewed_is_refused() {
        let length = Duration::from_millis(999);
        let refused = Operation::new("place").lease(Lease::Renewed { length }).check();
        assert!(matches!(refused, Err(ConfigError::Settings { .. })), "{refused:?}");
        let length = Duration::from_secs(1);
        assert_eq!(Operation::new("place").lease(Lease::Renewed { length }).check(), Ok(()));
    }

    #[test]
    fn a_key_that_is_the_same_for_every_record_is_refused() {
        let quoted = Operation::new("place").key("'orderId'").check();
        let constant = |result: &Result<(), ConfigError>, of| {
            matches!(
                result, Err(ConfigError::KeySpec(KeySpecError::Constant { what, .. })) if *what == of
            )
        };
        assert!(constant(&quoted, ExpressionUse::Key), "{quoted:?}");
        let quoted = Operation::new("place").key("orderId").fingerprint("`1`").check();
        assert!(constant(&quoted, ExpressionUse::Fingerprint), "{quoted:?}");
        assert_eq!(Operation::new("place").key("\"orderId\"").check(), Ok(()));
    }
}
