//! Asynchronous invocation: how SNS and EventBridge call a function.
//!
//! Lambda takes the event, answers at once, and invokes the function later. A function that fails is tried again, with
//! the same request id, after a minute and once more after two; then the event goes to the dead-letter queue.

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
    /// Two retries, after one second and after two more: AWS in fast motion.
    fn default() -> Self {
        Self { retry_delays: vec![Duration::from_secs(1), Duration::from_secs(2)] }
    }
}
