//! The protocol, as pure functions: what was seen and what time it is go in, what to write and
//! what to answer come out.
//!
//! Everything that decides about a key calls these functions: the batch engine, the model checker
//! (`tests/model`) and the simulations. Nothing here waits, reads a clock or touches a store.
//!
//! # A key's life
//!
//! ```text
//!             claim                    complete
//!  (nothing) ───────► INPROGRESS(owner) ───────► COMPLETED ──► expires
//!      ▲     undo      │  ▲    │  │              ▲
//!      └───────────────┘  │    │  └─ fail ─────► FAILED ─────► expires
//!                takeover │    │ release, undo
//!                         └── lapsed
//! ```
//!
//! * [`admit`] decides about a claim. With nothing seen it asks for a write under
//!   [`Guard::Absent`]; if that finds a record, it is asked again with the record.
//! * [`Held::write`] says how a claim is settled, [`Held::settled`] what it means when that write
//!   found something else.
//!
//! # The rules
//!
//! * A claim replaces a record only under a guard that names everything which was read, so that of
//!   two claimants one wins.
//! * At `now == lease_until` and at `now == expires_at` a record still counts, and for the skew
//!   allowance after that: the owner's clock may be behind ours.
//! * Settling needs `owner = mine AND status = INPROGRESS`. Whoever lost the lease changes nothing
//!   and learns what is there.
//! * A record that names an application counts for that application alone, until it expires: no other
//!   is answered by it or takes it over.
//! * Each write can be recognised by whoever made it: by `owner`, or by `last_owner` after a
//!   release. A write whose answer was lost is resolved by looking, not by guessing.
//! * While a record is in progress it expires no earlier than its lease, so that a server-side
//!   sweep never frees a key that is held.

mod admit;
mod claim;
mod held;
mod settled;

pub use admit::{Admission, admit};
pub use claim::Claim;
pub use held::{Held, Settlement};
pub use settled::{Overtaken, Settled};

use std::time::Duration;

#[expect(unused_imports, reason = "for the links in the module documentation")]
use crate::store::Guard;
use crate::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};

/// The last instant at which `record` keeps others out, clock skew included.
fn held_until(record: &IdempotencyRecord, clock_skew: Duration) -> Timestamp {
    let end = match (record.status, record.lease_until) {
        (Status::InProgress, Some(lease_until)) => lease_until,
        // No lease (another library, which knew no deadline) means locked, never free.
        (Status::InProgress, None) | (Status::Completed | Status::PermanentlyFailed, _) => {
            record.expires_at
        }
    };
    end.plus(clock_skew)
}
