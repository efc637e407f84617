//! The function: its configuration, its processes and the results of its invocations.

mod config;
mod effect_line;
mod invocation;
mod output;
mod pool;
mod process;
mod record_line;
mod runtime_api;
mod signal;

pub use config::FunctionConfig;
pub use effect_line::EffectLine;
pub use invocation::{AtOnce, Invocation, InvocationResult};
pub(crate) use output::OnOutput;
pub use output::OutputLine;
pub use pool::InFlight;
pub(crate) use pool::{Pool, new_id};
pub use record_line::{Outcome, RecordLine};
pub use signal::Signal;
