//! Misfortunes that an order may ask for, to see what becomes of it. Only where
//! `ORDERS_REHEARSAL=1` is set, as the local runner does; deployed, the script is ignored.

use std::{process, time::Duration};

use lambda_idempotency::{Call, Failure};
use serde::Deserialize;

use crate::orders::Order;

/// What the order asks for.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Script {
    /// Fails this often before it succeeds.
    fail_times: u32,
    /// Panics this often before it succeeds.
    panic_times: u32,
    /// Takes the whole process with it, as running out of memory does, this often.
    die_times: u32,
    /// As `die_times`, but when the order is placed already.
    die_late_times: u32,
    /// How long it takes to place.
    delay_ms: u64,
    /// As `delay_ms`, but only the first time.
    first_delay_ms: u64,
}

/// Whether scripts are followed.
#[derive(Clone, Copy)]
pub(crate) struct Rehearsal {
    on: bool,
}

impl Rehearsal {
    pub(crate) fn from_env() -> Self {
        Self { on: std::env::var("ORDERS_REHEARSAL").is_ok_and(|value| value == "1") }
    }

    /// What happens before the order is placed.
    pub(crate) async fn before(
        self,
        Order { script, .. }: &Order,
        call: &Call,
    ) -> Result<(), Failure> {
        if !self.on {
            return Ok(());
        }
        if call.vanished() < script.die_times {
            // Late enough for the claim to be seen.
            tokio::time::sleep(Duration::from_millis(100)).await;
            process::abort();
        }
        let first = call.failures() == 0 && call.vanished() == 0;
        let delay = script.delay_ms + if first { script.first_delay_ms } else { 0 };
        tokio::time::sleep(Duration::from_millis(delay)).await;
        if call.failures() < script.panic_times {
            #[expect(clippy::panic, reason = "the order asks for it")]
            {
                panic!("rehearsed");
            }
        }
        if call.failures() < script.fail_times {
            return Err(Failure::retry("rehearsed failure"));
        }
        Ok(())
    }

    /// What happens when the order is placed, and before that is recorded.
    pub(crate) fn after(self, Order { script, .. }: &Order, call: &Call) {
        if self.on && call.vanished() < script.die_late_times {
            process::abort();
        }
    }
}
