//! Compiles an operation, for a source or alone, and refuses one that cannot work.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::policy::Lease;
use lambda_idempotency_engine::batch::Pace;
use lambda_idempotency_keys::{
    Expression, View,
    producer::{Compiled, Selector},
};

use super::{
    Operation,
    prepared::{FieldSets, Prepared},
};
use crate::{error::ConfigError, source::Settings};

/// With a shorter lease, most writes to the store would be renewals.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);
/// The key of a worker that died stays held for the lease.
const LONGEST_LEASE: Duration = Duration::from_hours(24);

impl Operation {
    /// The operation without a source.
    pub(crate) fn prepared(&self) -> Result<Arc<Prepared>, ConfigError> {
        let prepare = || self.prepared_for(&Settings::default()).map(Arc::new);
        self.prepared.get_or_init(prepare).clone()
    }

    /// The operation as a source with these settings has it.
    pub(crate) fn prepared_for(&self, source: &Settings) -> Result<Prepared, ConfigError> {
        let name = self.name();
        if self.policy.retention.is_zero() {
            return Err(ConfigError::setting(format!(
                "operation `{name}` has a retention of zero; give `.retention(..)` the time for which duplicates are to be \
                 recognised"
            )));
        }
        if self.policy.result_retention.is_some_and(|most| most >= self.policy.retention) {
            return Err(ConfigError::setting(format!(
                "operation `{name}` answers with results for as long as its keys answer, so `.result_retention(..)` has no \
                 effect; give it less time than `.retention(..)`, or remove it"
            )));
        }
        self.check_lease()?;
        self.check_mode(source)?;
        let Compiled { operation, key_format, key, fingerprint, .. } = self.compiled(source)?;
        let mut policy = self.policy.clone();
        policy.on_conflict = self.on_conflict.unwrap_or(policy.on_conflict);
        policy.concurrency = source.concurrency.unwrap_or(policy.concurrency);
        Ok(Prepared {
            name: operation,
            field_sets: FieldSets::of(&[key.as_ref(), fingerprint.as_ref()]),
            key_format,
            key,
            whole: whole()?,
            fingerprint,
            policy,
            on_conflict: self.on_conflict,
            on_missing_key: self.on_missing_key,
            pace: Pace::default(),
        })
    }

    fn check_lease(&self) -> Result<(), ConfigError> {
        match self.policy.lease {
            Lease::Renewed { length } if !(SHORTEST_LEASE..=LONGEST_LEASE).contains(&length) => {
                Err(ConfigError::setting(format!(
                    "operation `{}` has {length:?} as its `.lease(..)`, which may have {} s to {} s: a shorter lease would \
                     be renewed all the time, and with a longer one the key of a worker that has died stays held",
                    self.name(),
                    SHORTEST_LEASE.as_secs(),
                    LONGEST_LEASE.as_secs()
                )))
            }
            _ => Ok(()),
        }
    }

    fn compiled(&self, source: &Settings) -> Result<Compiled, ConfigError> {
        let spec = match &source.key {
            Some(path) => self.keys.clone().with_path(path.clone()),
            None => self.keys.clone(),
        };
        let fingerprint = source.fingerprint.as_ref().or(self.fingerprint.as_ref());
        Ok(spec.compile(fingerprint)?)
    }

    /// What makes the keys of two sources of one operation differ always, if something does.
    pub(crate) fn differs(&self, other: &Self) -> Option<&'static str> {
        if self.keys.powertools_settings() != other.keys.powertools_settings() {
            Some("powertools")
        } else if self.keys.has_function() != other.keys.has_function() {
            Some("key_fn")
        } else {
            None
        }
    }

    /// The secret that keys are made with, if there is one.
    pub(crate) const fn secret(&self) -> Option<&lambda_idempotency_keys::Secret> {
        self.keys.secret()
    }
}

/// The whole payload.
fn whole() -> Result<Selector, ConfigError> {
    let expression =
        Expression::compile("@").map_err(|problem| ConfigError::key(problem.to_string()))?;
    Ok(Selector::of(View::Payload, expression))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_too_short_to_be_renewed_is_refused() {
        let length = Duration::from_millis(999);
        let refused = Operation::new("place").lease(Lease::Renewed { length }).check();
        assert!(matches!(refused, Err(ConfigError::Setting(_))), "{refused:?}");
        let length = Duration::from_secs(1);
        assert_eq!(Operation::new("place").lease(Lease::Renewed { length }).check(), Ok(()));
    }

    #[test]
    fn a_key_that_is_the_same_for_every_record_is_refused() {
        for (quoted, what) in [
            (Operation::new("place").key("'orderId'"), "the key of"),
            (Operation::new("place").key("orderId").fingerprint("`1`"), "the fingerprint of"),
        ] {
            let refused = quoted.check().unwrap_err().to_string();
            assert!(refused.starts_with(what), "{refused}");
            assert!(refused.contains("it is a constant, the same for every record"), "{refused}");
        }
        assert_eq!(Operation::new("place").key("\"orderId\"").check(), Ok(()));
    }
}
