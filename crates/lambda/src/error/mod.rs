//! The errors of this crate, with the types of their details.

mod config;
mod invocation;
mod mistakes;
mod run;

pub use lambda_idempotency_core::failure::BoxError;

pub use config::ConfigError;
pub use invocation::{InvocationError, NotJson};
pub use mistakes::{FilterMistake, HttpLayerMistake, SettingScope};
pub use run::{ResultLost, RunError};

#[doc(no_inline)]
pub use crate::rejection::NoDefaultKey;

#[doc(no_inline)]
pub use lambda_idempotency_keys::{
    DocumentError, ExpressionError, SecretError, SelectionError,
    producer::{ExpressionUse, KeySpecError},
};
