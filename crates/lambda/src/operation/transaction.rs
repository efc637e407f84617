//! Refuses transactional operations that could not commit their effects.

use lambda_idempotency_core::policy::{OnConflict, OnOutage};
use lambda_idempotency_engine::batch::Engine;

use super::{Operation, Prepared};
use crate::{
    error::{ConfigError, NoTransaction},
    on_missing_key::OnMissingKey,
};

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
        if self.policy.transactional { Err(refused) } else { Ok(()) }
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
        if self.policy.transactional { Err(refused) } else { Ok(()) }
    }
}
