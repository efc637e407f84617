//! The checked protocol: by default the real functions of the core crate.

use lambda_idempotency_core::{
    admission::{self, Admission, Claim, Held, Settled, Settlement},
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Guard, Write},
};

/// The decisions of the protocol. A mutant replaces one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Protocol {
    /// Decides about a claim.
    pub(crate) admit: fn(&Claim, Option<&IdempotencyRecord>, Timestamp) -> Admission,
    /// The write that settles a claim.
    pub(crate) write: fn(&Held, &Settlement, Timestamp) -> (Guard, Option<IdempotencyRecord>),
    /// What it means that this write was refused.
    pub(crate) settled: fn(&Held, &Settlement, Option<&IdempotencyRecord>, Timestamp) -> Settled,
    /// Whether a store applies a write.
    pub(crate) applies: fn(&Write, Option<&IdempotencyRecord>) -> bool,
}

/// The protocol as it is.
pub(crate) const REAL: Protocol = Protocol {
    admit: admission::admit,
    write: Held::write,
    settled: Held::settled,
    applies: Write::applies,
};
