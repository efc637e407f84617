//! An order, and what it asks for.

use std::time::Duration;

use lambda_idempotency::Call;
use serde::Deserialize;

/// An order. `lambda-idempotency prove` makes it.
#[derive(Deserialize)]
pub(crate) struct Order {
    /// The run that it belongs to.
    pub(crate) run: String,
    /// Its number in the run.
    pub(crate) order: u64,
    act: Act,
}

/// What an order asks for. All but the first, the second and the last are for its first attempt only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Nothing but its effect.
    Place,
    /// Each attempt takes a second.
    Slow,
    /// The table of idempotency records is throttled, before the effect.
    Throttle,
    /// An error that is not permanent, before the effect.
    Throw,
    /// The process ends before the effect, or after it.
    Die,
    DieLate,
    /// The handler waits past the end of its invocation, so that the library can stop it.
    Hang,
    HangLate,
    /// The same without giving the thread up, so that only Lambda can end it.
    Block,
    BlockLate,
    /// A permanent failure.
    Fail,
}

impl Order {
    /// What this attempt is asked for.
    pub(crate) fn act(&self, call: &Call) -> Act {
        let earlier = call.failed_attempts() + call.lost_attempts();
        // Without claims nobody counts attempts, and the queue counts receives.
        let is_first = earlier == 0 && call.receives().is_none_or(|receives| receives <= 1);
        match self.act {
            act @ (Act::Place | Act::Slow | Act::Fail) => act,
            act if is_first => act,
            _ => Act::Place,
        }
    }
}

/// Longer than any invocation.
const FOR_EVER: Duration = Duration::from_hours(1);

pub(crate) async fn hang() {
    tokio::time::sleep(FOR_EVER).await;
}

pub(crate) fn block() {
    std::thread::sleep(FOR_EVER);
}

pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}
