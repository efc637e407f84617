//! The result of an invocation.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::record_line::RecordLine;
use crate::dynamodb::{request::StoreRequest, usage::Usage};

/// One finished invocation.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// `Lambda-Runtime-Aws-Request-Id`.
    pub request_id: String,
    /// The process that had it.
    pub pid: u32,
    /// When the process was given the event.
    pub began: Instant,
    /// How it ended.
    pub result: InvocationResult,
    /// From giving the event to the process to the end, without the start of the process.
    pub duration: Duration,
    /// The function's lines about each record, in that order.
    pub records: Vec<RecordLine>,
    /// The function's DynamoDB requests during the invocation.
    pub dynamodb: Usage,
    /// The same requests one by one, in the order in which they ended.
    pub requests: Vec<StoreRequest>,
}

impl Invocation {
    /// The response, if the function gave one that is JSON.
    pub fn response(&self) -> Option<&Value> {
        match &self.result {
            InvocationResult::Response(value) => Some(value),
            _ => None,
        }
    }
}

/// Invocations that one process had at the same time.
#[derive(Clone, Debug)]
pub struct AtOnce {
    /// Each of them, in the order given. `dynamodb` and `requests` are empty where there are several, because a request does not say
    /// to which it belongs.
    pub invocations: Vec<Invocation>,
    /// The DynamoDB requests of all of them.
    pub dynamodb: Usage,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum InvocationResult {
    /// The function answered. An empty body counts as `null`.
    Response(Value),
    /// The function answered with something that is not JSON.
    NotJson(String),
    /// The function reported an error, while starting or while handling the event.
    FunctionError {
        /// `errorType`.
        kind: String,
        /// `errorMessage`.
        message: String,
    },
    /// The deadline passed; the process was killed.
    TimedOut,
    /// The process ended before it answered.
    Exited {
        /// The exit code, if it exited.
        code: Option<i32>,
        /// The signal, if one killed it (9 after [`Local::kill_in_flight`](crate::Local::kill_in_flight)).
        signal: Option<i32>,
    },
}

impl InvocationResult {
    /// Whether the caller (the poller, the async queue) sees a success.
    pub fn is_response(&self) -> bool {
        matches!(self, Self::Response(_))
    }

    pub(crate) fn exited(status: std::process::ExitStatus) -> Self {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        Self::Exited { code: status.code(), signal }
    }
}

impl std::fmt::Display for InvocationResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Response(_) => f.write_str("ok"),
            Self::NotJson(_) => f.write_str("answered with something that is not JSON"),
            Self::FunctionError { kind, message } => write!(f, "function error: {kind}: {message}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Exited { signal: Some(signal), .. } => write!(f, "killed by signal {signal}"),
            Self::Exited { code: Some(code), .. } => write!(f, "exited with code {code}"),
            Self::Exited { .. } => f.write_str("exited"),
        }
    }
}
