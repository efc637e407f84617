//! The errors of this crate, with the types of their details.

mod config;
#[cfg(feature = "postgres")]
mod execute;
mod invocation;
mod run;
mod store;
#[cfg(feature = "dynamodb")]
mod transact;

pub use lambda_idempotency_core::failure::BoxError;

pub use config::ConfigError;
#[cfg(feature = "postgres")]
pub use execute::ExecuteError;
pub use invocation::{InvocationError, NotJson};
pub use run::{ResultLost, RunError};
pub use store::StoreConfigError;
#[cfg(feature = "dynamodb")]
pub use transact::TransactError;

pub use lambda_idempotency_engine::steps::StepError;

#[doc(no_inline)]
pub use crate::rejection::Rejection;

#[doc(no_inline)]
pub use lambda_idempotency_keys::{
    DocumentError, ExpressionError, SecretError, SelectionError,
    producer::{ExpressionUse, KeySpecError},
};
