//! Errors of the local environment.
//!
//! A function that fails is not an error here but an [`InvocationResult`](crate::InvocationResult). An [`Error`]
//! means that the function could not be invoked.

use std::io;
use std::path::PathBuf;

use crate::InvocationResult;

/// Why the local environment could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The function's binary could not be started.
    #[error("cannot start the function {}: check that the file exists and is executable", path.display())]
    Start {
        /// The binary.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The function's process never asked for an event.
    #[error("the function {} does not start: before it asked for an event, it {}", path.display(), ended(result))]
    NotReady {
        /// The binary.
        path: PathBuf,
        /// How it ended.
        result: InvocationResult,
    },
    /// A loopback port could not be opened.
    #[error("cannot listen on 127.0.0.1: does a sandbox forbid local ports?")]
    Listen(#[source] io::Error),
    /// The process could not be watched or killed.
    #[error("lost control of the function's process")]
    Process(#[source] io::Error),
    /// The embedded DynamoDB refused a request that this crate made.
    #[error("embedded DynamoDB failed at {what}")]
    Database {
        /// What was attempted.
        what: String,
        /// The emulator's answer.
        source: dynoxide::DynoxideError,
    },
    /// A server of a store could not be started.
    #[error("the server of the store cannot be used: {what}")]
    Server {
        /// What happened and what to do.
        what: String,
        /// The error of the operating system, if there is one.
        source: Option<io::Error>,
    },
    /// The event is not JSON.
    #[error(transparent)]
    Event(#[from] InvalidEvent),
    /// Building the function failed.
    #[error("cannot build the function: {what}")]
    Build {
        /// What happened and what to do.
        what: String,
        /// The error of the operating system, if there is one.
        source: Option<io::Error>,
    },
    /// The `Local` is being shut down.
    #[error("this local Lambda has been shut down: start another one")]
    ShutDown,
}

fn ended(result: &InvocationResult) -> String {
    match result {
        InvocationResult::FunctionError { .. } => format!("reported a {result}"),
        InvocationResult::Exited { signal: Some(_), .. } => format!("was {result}"),
        _ => result.to_string(),
    }
}

/// An event that is not JSON: its name, the position of the mistake, and what is wrong there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidEvent(String);

impl InvalidEvent {
    pub(crate) fn new(name: &str, source: &serde_json::Error) -> Self {
        let (line, column) = (source.line(), source.column());
        let reason = source.to_string().replace(&format!(" at line {line} column {column}"), "");
        Self(format!("{name}:{line}:{column}: not valid JSON: {reason}"))
    }
}
