//! Compiling an operation, and refusing one that cannot work.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::policy::{Lease, Remembered};
use lambda_idempotency_engine::batch::Pace;
use lambda_idempotency_keys::{KeyPath, is_operation_name, producer::RecipeError};

use super::{
    Operation,
    prepared::{Looks, Prepared},
};
use crate::{bad_record::OnBadRecord, error::ConfigError};

/// Below this, renewals would outnumber everything else.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

impl Operation {
    pub(crate) fn prepared(&self) -> Result<Arc<Prepared>, ConfigError> {
        let prepare = || self.prepare().map(Arc::new).map_err(|error| self.with_variable(error));
        self.prepared.get_or_init(prepare).clone()
    }

    fn prepare(&self) -> Result<Prepared, ConfigError> {
        if !is_operation_name(&self.name) {
            return Err(RecipeError::Name { name: Arc::clone(&self.name) }.into());
        }
        if self.policy.retention.is_zero() {
            return Err(ConfigError::Retention { operation: Arc::clone(&self.name) });
        }
        if let Lease::Renewed { length } = self.policy.lease
            && length < SHORTEST_LEASE
        {
            return Err(ConfigError::Lease { operation: Arc::clone(&self.name), length });
        }
        self.functions_fit()?;
        self.check_filters()?;
        if self.sink.is_some() && self.policy.remembered == Remembered::Acknowledge {
            return Err(ConfigError::AcknowledgedAndDiverted { operation: Arc::clone(&self.name) });
        }
        let spoken = self.spoken()?;
        let own = |path: Option<KeyPath>| path.filter(|_| spoken.is_none());
        let key = own(self.key_path()?).map(|path| self.compile("key", &path)).transpose()?;
        let key = self.with_optional(key)?;
        let fingerprint = own(self.fingerprint.clone())
            .map(|path| self.compile("fingerprint", &path))
            .transpose()?;
        Ok(Prepared {
            name: Arc::clone(&self.name),
            looks: Looks::of(&[key.as_ref(), fingerprint.as_ref()]),
            form: self.form()?,
            key,
            whole: self.compile("key", &KeyPath::from("@"))?,
            fingerprint,
            spoken,
            policy: self.policy.clone(),
            conflict: self.conflict,
            missing_key: self.missing_key,
            bad_records: match &self.bad_record {
                Some(OnBadRecord::Fail) => None,
                Some(OnBadRecord::Divert(sink)) => Some(sink.clone()),
                None => self.sink.clone(),
            },
            sink: self.sink.clone(),
            pace: Pace::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_too_short_to_be_renewed_is_refused() {
        let length = Duration::from_millis(999);
        let refused = Operation::new("place").lease(Lease::Renewed { length }).check();
        assert!(matches!(refused, Err(ConfigError::Lease { .. })), "{refused:?}");
        let length = Duration::from_secs(1);
        assert_eq!(Operation::new("place").lease(Lease::Renewed { length }).check(), Ok(()));
    }

    #[test]
    fn a_key_that_is_the_same_for_every_record_is_refused() {
        let quoted = Operation::new("place").key("'orderId'").check();
        assert!(matches!(quoted, Err(ConfigError::Constant { what: "key", .. })), "{quoted:?}");
        let quoted = Operation::new("place").key("orderId").fingerprint("`1`").check();
        assert!(matches!(quoted, Err(ConfigError::Constant { what: "fingerprint", .. })));
        assert_eq!(Operation::new("place").key("\"orderId\"").check(), Ok(()));
    }
}
