//! What an operation does with its keys: which settings fit its mode, and that all uses of a name have the same.

use std::sync::Arc;

use lambda_idempotency_core::policy::{Mode, OnOutage, Policy};
use lambda_idempotency_engine::batch::Engine;

use super::{OnMissingKey, Operation, Prepared};
use crate::{error::ConfigError, source::Settings};

impl Operation {
    /// Refuses settings that have no effect in this mode, or that would lose what it promises.
    pub(super) fn check_mode(&self, source: &Settings) -> Result<(), ConfigError> {
        let mode = self.policy.mode;
        let problem = match mode {
            Mode::Transactional => self.unprotected(),
            Mode::Optimistic => self.unprotected().or_else(|| self.without_a_claim(source)),
            Mode::Mutex => self.without_a_completion(source),
            _ => None,
        };
        match problem {
            None => Ok(()),
            Some(problem) => {
                let operation = self.name();
                Err(ConfigError::mode(format!(
                    "operation `{operation}` has `Mode::{mode:?}`: {problem}"
                )))
            }
        }
    }

    /// Policies that run handlers without a claim.
    fn unprotected(&self) -> Option<String> {
        let runs_unprotected = [
            ("on_outage", self.policy.on_outage == OnOutage::RunUnprotected),
            ("on_missing_key", self.on_missing_key == OnMissingKey::RunUnprotected),
        ];
        let setting = runs_unprotected.into_iter().find(|(_, runs)| *runs);
        setting.map(|(setting, _)| {
            format!(
                "its policy `.{setting}(..)` runs handlers without a claim, and then there is no completion to commit \
                 effects with; return such records instead"
            )
        })
    }

    fn without_a_claim(&self, source: &Settings) -> Option<String> {
        let (policy, default) = (&self.policy, Policy::default());
        let set = [
            ("lease", policy.lease != default.lease),
            ("max_failed_attempts", policy.max_failed_attempts.is_some()),
            ("max_lost_attempts", policy.max_lost_attempts.is_some()),
            ("recoverable", source.recoverable.is_some()),
        ];
        if let Some((setting, _)) = set.into_iter().find(|(_, is_set)| *is_set) {
            return Some(format!(
                "`.{setting}(..)` has no effect, because no key is claimed and nothing is recorded of an attempt that \
                 fails; remove it, or use `Mode::Transactional`"
            ));
        }
        let least = policy.mode.least_retention();
        (policy.retention < least).then(|| {
            format!(
                "its retention is less than {} minutes, so that a request that arrives late could be applied after \
                 it; set a longer `.retention(..)`, or use `Mode::Transactional`",
                least.as_secs() / 60
            )
        })
    }

    fn without_a_completion(&self, source: &Settings) -> Option<String> {
        let (policy, default) = (&self.policy, Policy::default());
        let set = [
            ("retention", policy.retention != default.retention),
            ("result_retention", policy.result_retention.is_some()),
            ("fingerprint", self.fingerprint.is_some() || source.fingerprint.is_some()),
            ("on_timeout", policy.on_timeout != default.on_timeout),
            ("max_failed_attempts", policy.max_failed_attempts.is_some()),
            ("max_lost_attempts", policy.max_lost_attempts.is_some()),
        ];
        if source.recoverable.is_some() {
            return Some(
                "the next record of a key replaces the one that `.recoverable(..)` has kept, which could not be \
                 recovered any more; remove it, or choose another mode"
                    .to_owned(),
            );
        }
        set.into_iter().find(|(_, is_set)| *is_set).map(|(setting, _)| {
            format!(
                "`.{setting}(..)` has no effect, because each delivery calls the handler and no failure is recorded; \
                 remove it, or choose another mode"
            )
        })
    }
}

impl Prepared {
    /// Refuses a mutex whose keys are the identities of the records, so that none excludes another.
    pub(crate) fn names_what_it_excludes(&self) -> Result<(), ConfigError> {
        if self.policy.mode != Mode::Mutex || self.names_key() {
            return Ok(());
        }
        Err(ConfigError::mode(format!(
            "operation `{}` has `Mode::Mutex` and no key: without `.key(..)` the key of a record is its own identity, \
             which excludes no other record; name what is protected with `.key(\"...\")`, or choose another mode",
            self.name
        )))
    }

    /// Refuses an operation with effects where none can be committed.
    pub(crate) fn commits_with(&self, engine: &Engine) -> Result<(), ConfigError> {
        let mode = self.policy.mode;
        let problem = if !mode.commits_effects() {
            return Ok(());
        } else if engine.is_unprotected() {
            "IDEMPOTENCY_DISABLED is set, and without a claim there is no completion to commit effects with; remove the \
             variable"
        } else if engine.capabilities().effects.is_none() {
            "its store has no transactions; use `DynamoDbStore` or `PostgresStore`"
        } else {
            return Ok(());
        };
        let name = &self.name;
        Err(ConfigError::mode(format!(
            "operation `{name}` cannot have `Mode::{mode:?}`: {problem}"
        )))
    }
}

/// Refuses two uses of one name that treat its keys differently: a mutex keeps nothing, so it would be answered from
/// completions that it does not make, and an optimistic operation claims nothing that the others could find.
pub(crate) fn modes_agree(one: Mode, other: Mode, operation: &Arc<str>) -> Result<(), ConfigError> {
    if one == other {
        return Ok(());
    }
    Err(ConfigError::mode(format!(
        "operation `{operation}` has `Mode::{one:?}` at one place and `Mode::{other:?}` at another, with the same keys, and \
         each would be answered from what the other keeps; give both the same mode, or other work another name"
    )))
}
