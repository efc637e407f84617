//! The faults that an order may ask for: failures, panics, deaths of the process, delays.

use std::{process, thread, time::Duration};

use lambda_idempotency::{Call, Failure};
use serde::Deserialize;

/// The faults of one order.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Script {
    /// How often the handler fails before it succeeds.
    fail_times: u32,
    /// How often the handler panics before it succeeds.
    panic_times: u32,
    /// How often the handler ends the whole process, as running out of memory does.
    die_times: u32,
    /// As `die_times`, but after the order was placed.
    die_late_times: u32,
    /// How long the handler takes, in milliseconds.
    delay_ms: u64,
    /// As `delay_ms`, but only the first time.
    first_delay_ms: u64,
    /// As `first_delay_ms`, but after the order was placed.
    late_delay_ms: u64,
    /// As `first_delay_ms`, but blocking the thread, so that nothing else in the process runs meanwhile.
    first_block_ms: u64,
    /// As `first_block_ms`, but after the order was placed.
    late_block_ms: u64,
}

impl Script {
    /// The faults before the order is placed.
    pub(super) async fn before(&self, call: &Call) -> Result<(), Failure> {
        if attempts(call, call.lost_attempts()) < self.die_times {
            // Waits long enough that other deliveries find the claim.
            pause(100).await;
            process::abort();
        }
        if is_first(call) {
            block(self.first_block_ms);
            pause(self.first_delay_ms).await;
        }
        pause(self.delay_ms).await;
        if attempts(call, call.failed_attempts()) < self.panic_times {
            #[expect(clippy::panic, reason = "the order asks for it")]
            {
                panic!("the order asks for a panic");
            }
        }
        if attempts(call, call.failed_attempts()) < self.fail_times {
            return Err(Failure::transient("the order asks for a failure"));
        }
        Ok(())
    }

    /// The faults after the order was placed and before the completion is recorded.
    pub(super) async fn after(&self, call: &Call) {
        if attempts(call, call.lost_attempts()) < self.die_late_times {
            process::abort();
        }
        if is_first(call) {
            block(self.late_block_ms);
            pause(self.late_delay_ms).await;
        }
    }
}

/// Whether this is the first attempt, as far as the store knows.
fn is_first(call: &Call) -> bool {
    attempts(call, call.failed_attempts() + call.lost_attempts()) == 0
}

/// The earlier attempts, of which so many were counted. Without claims none is, so the receives count.
fn attempts(call: &Call, counted: u32) -> u32 {
    match super::is_set("SCRIPTED_OPTIMISTIC") {
        true => call.receives().map_or(0, |receives| receives.saturating_sub(1)),
        false => counted,
    }
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

fn block(ms: u64) {
    if ms > 0 {
        thread::sleep(Duration::from_millis(ms));
    }
}
