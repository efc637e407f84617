//! What the unit tests of several parts need: instants, and claims that were granted.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    admission::{Admission, Claim, Held, admit},
    clock::Timestamp,
    record::Owner,
};

use super::calls::{CallId, CallIds};

pub(super) const START: Timestamp = Timestamp::from_secs(1_000);

/// After so many milliseconds.
pub(super) fn after(ms: u64) -> Timestamp {
    START.plus(Duration::from_millis(ms))
}

/// A claim of a record's key for so many milliseconds.
pub(super) fn claim(at: usize, lease: u64) -> Claim {
    Claim {
        owner: Owner::from_bits(at as u128 + 1),
        lease_until: after(lease),
        retention: Duration::from_hours(1),
        clock_skew: Duration::ZERO,
        fingerprint: None,
        application: None,
        provenance: None,
        payload: None,
    }
}

/// A claim that was granted for so many milliseconds.
pub(super) fn held(lease: u64) -> Arc<Held> {
    let Admission::Try { held, .. } = admit(&claim(0, lease), None, START) else {
        panic!("nobody has claimed it")
    };
    Arc::new(held)
}

/// The number of a call, where one at a time is on its way.
pub(super) fn call() -> CallId {
    CallIds::default().next()
}
