//! Asynchronous invocation: how SNS and EventBridge call a function.
//!
//! Lambda accepts the event, answers at once, and invokes the function later. If the function fails, Lambda retries with
//! the same request id after one minute and again after two; then it sends the event to the dead-letter queue.

use std::time::Duration;

/// Settings of asynchronous invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsyncConfig {
    /// How long to wait before each retry. There are as many retries as delays.
    pub retry_delays: Vec<Duration>,
}

impl AsyncConfig {
    /// What AWS does: two retries, after one minute and after two more.
    pub fn aws() -> Self {
        Self { retry_delays: vec![Duration::from_secs(60), Duration::from_secs(120)] }
    }
}

impl Default for AsyncConfig {
    /// Two retries, after one second and after two more: as in AWS, but with seconds for minutes.
    fn default() -> Self {
        Self { retry_delays: vec![Duration::from_secs(1), Duration::from_secs(2)] }
    }
}
