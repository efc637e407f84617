//! What an operation does with its keys, which must be the same wherever the operation is used.

use std::sync::Arc;

use lambda_idempotency_core::policy::Policy;

use crate::error::{ConfigError, SettingsMistake};

/// How the work of a key is protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Claimed, called and completed.
    Default,
    Transactional,
    Optimistic,
    Mutex,
}

impl Mode {
    pub(crate) const fn of(policy: &Policy) -> Self {
        if policy.mutex {
            Self::Mutex
        } else if policy.optimistic {
            Self::Optimistic
        } else if policy.transactional {
            Self::Transactional
        } else {
            Self::Default
        }
    }

    /// Refuses two uses of one name that treat its keys differently: a mutex keeps nothing, so it would be answered from
    /// completions that it does not make, and an optimistic operation claims nothing that the others could find.
    pub(crate) fn agree(self, other: Self, operation: &Arc<str>) -> Result<(), ConfigError> {
        if self == other {
            return Ok(());
        }
        let mistake = SettingsMistake::TwoModes { modes: [self.describe(), other.describe()] };
        Err(ConfigError::Settings { operation: Arc::clone(operation), mistake })
    }

    const fn describe(self) -> &'static str {
        match self {
            Self::Default => "the default mode",
            Self::Transactional => "`.transactional()`",
            Self::Optimistic => "`.optimistic()`",
            Self::Mutex => "`.mutex()`",
        }
    }
}
