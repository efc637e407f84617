//! The errors of this crate, with the types of their details.

mod config;
mod invocation;
mod run;

pub use config::{ConfigError, FilterMistake};
pub use invocation::InvocationError;
pub use run::{ResultLost, RunError};
