//! What the model checks: by default the very functions of this crate.

use lambda_idempotency_core::{
    admission::{self, Admission, Claim, Held, Settled, Settlement},
    clock::Timestamp,
    record::Record,
    store::{Guard, Write},
};

/// The decisions of the protocol. Every default is the real function; a mutant replaces one.
pub(crate) trait Protocol: Send + Sync + 'static {
    /// Decides about a claim.
    fn admit(claim: &Claim, found: Option<&Record>, now: Timestamp) -> Admission {
        admission::admit(claim, found, now)
    }

    /// The write that settles a claim.
    fn write(held: &Held, settlement: &Settlement, now: Timestamp) -> (Guard, Option<Record>) {
        held.write(settlement, now)
    }

    /// What it means when that write found something else.
    fn settled(
        held: &Held,
        settlement: &Settlement,
        found: Option<&Record>,
        now: Timestamp,
    ) -> Settled {
        held.settled(settlement, found, now)
    }

    /// Whether a store applies a write.
    fn applies(write: &Write, found: Option<&Record>) -> bool {
        write.applies(found)
    }

    /// Whether a delivery may be acknowledged because someone else has its key.
    fn busy_is_done() -> bool {
        false
    }

    /// Whether a handler is started although its lease is over by the worker's clock.
    fn starts_late() -> bool {
        false
    }
}

/// The protocol as it is.
#[derive(Debug)]
pub(crate) struct Real;

impl Protocol for Real {}
