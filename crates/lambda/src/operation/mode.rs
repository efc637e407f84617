//! What an operation does with its keys, which must be the same wherever the operation is used.

use std::sync::Arc;

use lambda_idempotency_core::policy::Mode;

use crate::error::{ConfigError, SettingsMistake};

/// Refuses two uses of one name that treat its keys differently: a mutex keeps nothing, so it would be answered from
/// completions that it does not make, and an optimistic operation claims nothing that the others could find.
pub(crate) fn modes_agree(one: Mode, other: Mode, operation: &Arc<str>) -> Result<(), ConfigError> {
    if one == other {
        return Ok(());
    }
    let mistake = SettingsMistake::TwoModes { modes: [describe(one), describe(other)] };
    Err(ConfigError::Settings { operation: Arc::clone(operation), mistake })
}

const fn describe(mode: Mode) -> &'static str {
    match mode {
        Mode::Transactional => "`.transactional()`",
        Mode::Optimistic => "`.optimistic()`",
        Mode::Mutex => "`.mutex()`",
        _ => "the default mode",
    }
}
