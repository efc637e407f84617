//! The function: its configuration, its processes and the results of its invocations.

mod config;
pub(crate) mod invocation;
mod output;
mod pool;
mod process;
mod record_line;
mod runtime_api;

pub use config::FunctionConfig;
pub use invocation::{AtOnce, Invocation, InvocationResult};
pub(crate) use output::OnOutput;
pub use output::OutputLine;
pub use pool::InFlight;
pub(crate) use pool::Pool;
pub use process::Signal;
pub use record_line::{EffectLine, Outcome, RecordLine};
