//! Misfortunes that an order may ask for, to see what becomes of it. Only where
//! `ORDERS_REHEARSAL=1` is set, as the local runner does; deployed, the script is ignored.
//!
//! A rehearsal may also keep a [`Ledger`] (`ORDERS_LEDGER`), run on a clock that is wrong
//! (`ORDERS_CLOCK_SKEW_MS`), and leave the protection out (`ORDERS_REHEARSAL_UNPROTECTED=1`), to see
//! whether whoever watches would notice.

use std::{env, error::Error, io, pin::Pin, process, str::FromStr, thread, time::Duration};

use lambda_idempotency::{Call, Clock, Failure, MissingKey, Operation, SystemClock, Timestamp};
use serde::Deserialize;

use crate::{ledger::Ledger, orders::Order};

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
    /// As `first_delay_ms`, but when the order is placed already.
    late_delay_ms: u64,
    /// As `first_delay_ms`, but without awaiting: nothing else in the process goes on meanwhile.
    first_block_ms: u64,
    /// As `first_block_ms`, but when the order is placed already.
    late_block_ms: u64,
}

/// Whether scripts are followed, and what else is rehearsed.
#[derive(Clone, Default)]
pub(crate) struct Rehearsal {
    on: bool,
    ledger: Option<Ledger>,
    skew_ms: Option<i64>,
    unprotected: bool,
}

impl Rehearsal {
    pub(crate) fn from_env() -> Result<Self, Box<dyn Error + Send + Sync>> {
        if !is_set("ORDERS_REHEARSAL") {
            return Ok(Self::default());
        }
        let skew = env::var("ORDERS_CLOCK_SKEW_MS").ok();
        Ok(Self {
            on: true,
            ledger: Ledger::from_env()?,
            skew_ms: skew.map(|skew| i64::from_str(&skew)).transpose()?,
            unprotected: is_set("ORDERS_REHEARSAL_UNPROTECTED"),
        })
    }

    /// The clock to run on, if it is not the machine's.
    pub(crate) fn clock(&self) -> Option<SkewedClock> {
        self.skew_ms.map(SkewedClock)
    }

    /// The operation, without its protection if that is rehearsed: no record has such a key.
    pub(crate) fn operation(&self, operation: Operation) -> Operation {
        if !self.unprotected {
            return operation;
        }
        operation.key("rehearsedWithoutKey").on_missing_key(MissingKey::RunUnprotected)
    }

    /// What happens before the order is placed.
    pub(crate) async fn before(&self, order: &Order, call: &Call) -> Result<(), Failure> {
        let script = &order.script;
        if !self.on {
            return Ok(());
        }
        if let Some(ledger) = &self.ledger {
            ledger.write("start", order, call)?;
        }
        if call.vanished() < script.die_times {
            // Late enough for the claim to be seen.
            pause(100).await;
            process::abort();
        }
        if is_first(call) {
            block(script.first_block_ms);
            pause(script.first_delay_ms).await;
        }
        pause(script.delay_ms).await;
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

    /// Places the order in the ledger; false if there is none.
    pub(crate) fn place(&self, order: &Order, call: &Call) -> io::Result<bool> {
        self.ledger.as_ref().map_or(Ok(false), |ledger| {
            ledger.write("effect", order, call)?;
            Ok(true)
        })
    }

    /// What happens when the order is placed, and before that is recorded.
    pub(crate) async fn after(&self, order: &Order, call: &Call) {
        let script = &order.script;
        if !self.on {
            return;
        }
        if call.vanished() < script.die_late_times {
            process::abort();
        }
        if is_first(call) {
            block(script.late_block_ms);
            pause(script.late_delay_ms).await;
        }
    }
}

fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| value == "1")
}

/// As far as one can know.
fn is_first(call: &Call) -> bool {
    call.failures() == 0 && call.vanished() == 0
}

async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

fn block(ms: u64) {
    if ms > 0 {
        thread::sleep(Duration::from_millis(ms));
    }
}

/// A clock that is fast or slow by so many milliseconds.
#[derive(Clone, Copy)]
pub(crate) struct SkewedClock(i64);

impl Clock for SkewedClock {
    fn now(&self) -> Timestamp {
        let millis = SystemClock.now().as_millis();
        Timestamp::from_millis(millis.saturating_add_signed(self.0))
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        SystemClock.sleep(duration)
    }
}
