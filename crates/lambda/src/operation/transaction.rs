//! Refuses transactional operations that could not commit their effects.

use std::time::Duration;

use lambda_idempotency_core::policy::{Mode, OnConflict, OnOutage, Policy};
use lambda_idempotency_engine::batch::Engine;

use super::{Operation, Prepared};
use crate::{
    error::{ConfigError, NoTransaction, OptimisticMistake},
    on_missing_key::OnMissingKey,
};

/// The shortest retention without a claim. DynamoDB refuses requests that were signed longer ago than this. So a
/// delayed request cannot be applied after the record that excludes it has expired.
const LEAST_RETENTION: Duration = Duration::from_mins(15);

impl Operation {
    /// Refuses policies that run handlers without a claim, or that lose what was not committed.
    pub(super) fn check_transaction(&self) -> Result<(), ConfigError> {
        let mistake = if self.policy.on_outage == OnOutage::RunUnprotected {
            NoTransaction::Unprotected { setting: "on_outage" }
        } else if self.on_missing_key == OnMissingKey::RunUnprotected {
            NoTransaction::Unprotected { setting: "on_missing_key" }
        } else if self.on_conflict == Some(OnConflict::Skip) {
            NoTransaction::Skips
        } else {
            return Ok(());
        };
        let refused = ConfigError::Transaction { operation: self.shared_name(), mistake };
        if self.policy.mode.commits_effects() { Err(refused) } else { Ok(()) }
    }

    /// Refuses settings that have no effect without a claim, or that need one.
    pub(super) fn check_optimistic(&self) -> Result<(), ConfigError> {
        let (policy, default) = (&self.policy, Policy::default());
        let mistake = if policy.lease != default.lease {
            OptimisticMistake::NoEffect { setting: "lease" }
        } else if policy.lease_grace != default.lease_grace {
            OptimisticMistake::NoEffect { setting: "lease_grace" }
        } else if policy.max_failed_attempts.is_some() {
            OptimisticMistake::NoEffect { setting: "max_failed_attempts" }
        } else if policy.max_lost_attempts.is_some() {
            OptimisticMistake::NoEffect { setting: "max_lost_attempts" }
        } else if self.recoverable.is_some() {
            OptimisticMistake::NoEffect { setting: "recoverable" }
        } else if policy.retention < LEAST_RETENTION {
            OptimisticMistake::Retention { least: LEAST_RETENTION }
        } else {
            return Ok(());
        };
        let refused = ConfigError::Optimistic { operation: self.shared_name(), mistake };
        if policy.mode == Mode::Optimistic { Err(refused) } else { Ok(()) }
    }
}

impl Prepared {
    /// Refuses an operation that is transactional where nothing can be committed.
    pub(crate) fn commits_with(&self, engine: &Engine) -> Result<(), ConfigError> {
        let mistake = if engine.is_unprotected() {
            NoTransaction::Disabled
        } else if engine.capabilities().effects.is_none() {
            NoTransaction::Store
        } else {
            return Ok(());
        };
        let operation = self.name.clone();
        let refused = ConfigError::Transaction { operation, mistake };
        if self.policy.mode.commits_effects() { Err(refused) } else { Ok(()) }
    }
}
