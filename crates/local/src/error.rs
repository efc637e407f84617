//! Errors of the local environment.
//!
//! A function that fails is not an error here but an [`InvocationResult`](crate::InvocationResult). An [`Error`]
//! means that the function could not be invoked.

use std::io;
use std::path::PathBuf;

use crate::function::invocation::InvocationResult;

/// Why the local environment could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The function's binary could not be started.
    #[error("cannot start the function {}: check that the file exists and is executable", path.display())]
    Start {
        /// The binary.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The function's process never asked for an event.
    #[error(
        "the function {} does not start: before it asked for an event, it {}{}",
        path.display(), ended(result), last_words(output)
    )]
    NotReady {
        /// The binary.
        path: PathBuf,
        /// How it ended.
        result: InvocationResult,
        /// The last lines that it wrote.
        output: Vec<String>,
    },
    /// A loopback port could not be opened.
    #[error("cannot listen on 127.0.0.1: does a sandbox forbid local ports?")]
    Listen(#[source] io::Error),
    /// The process could not be watched or killed.
    #[error("lost control of the function's process")]
    Process(#[source] io::Error),
    /// The function could not be built, an event is not JSON, or the embedded DynamoDB refused something.
    #[error("{what}")]
    Failed {
        /// The failure and its remedy.
        what: String,
        /// The error behind it, if there is one.
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The `Local` is being shut down.
    #[error("this local Lambda has been shut down: start another one")]
    ShutDown,
}

impl Error {
    pub(crate) fn failed(what: impl Into<String>) -> Self {
        Self::Failed { what: what.into(), source: None }
    }

    /// The same with the error behind it.
    pub(crate) fn because<E>(what: impl Into<String>) -> impl FnOnce(E) -> Self
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let what = what.into();
        move |source| Self::Failed { what, source: Some(Box::new(source)) }
    }
}

fn ended(result: &InvocationResult) -> String {
    match result {
        InvocationResult::FunctionError { .. } => format!("reported a {result}"),
        InvocationResult::Exited { signal: Some(_), .. } => format!("was {result}"),
        _ => result.to_string(),
    }
}

fn last_words(output: &[String]) -> String {
    match output {
        [] => String::new(),
        lines => format!("; the last that it wrote:\n  {}", lines.join("\n  ")),
    }
}
