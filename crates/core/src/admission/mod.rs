//! The protocol, as pure functions. Their inputs are the record that was read and the time; their
//! results are the write to make or the answer to give.
//!
//! The batch engine, the model checker (`tests/mutated`) and the simulations all call these
//! functions. They do not wait, read a clock or call a store.
//!
//! # A key's life
//!
//! ```text
//!             claim                    complete
//!  (nothing) ───────► INPROGRESS(owner) ───────► COMPLETED ──► expires
//!      ▲     undo      │  ▲    │  │              ▲
//!      └───────────────┘  │    │  └─ fail ─────► FAILED ─────► expires
//!                takeover │    │ release, undo, decline
//!                         └── lapsed
//! ```
//!
//! * [`admit`] says what a record means for a claim: a [`Finding`]. If the key is free, [`Claim::over`] makes the write that
//!   claims it; if that write finds another record, call [`admit`] again with that.
//! * [`Held::write`] makes the write that settles a claim. [`Held::settled`] says what to do if
//!   that write found another record.
//!
//! * [`free`] decides whether the record of a key may be deleted, so that its next delivery is new work.
//!
//! # The rules
//!
//! * A claim replaces a record only under a guard that names everything that was read, so that only
//!   one of two claims succeeds.
//! * At `now == lease_until` and at `now == expires_at` a record is still valid, and for the clock
//!   skew after that, because the owner's clock may be behind ours.
//! * Settling needs `owner = mine AND status = INPROGRESS`. A worker that lost its lease changes
//!   nothing and receives the stored record.
//! * Effects are committed only by the owner, with its completion. If the record is gone, nothing is
//!   committed, although a completion without effects is then written anew.
//! * Every write of a record in progress carries its steps on, a takeover too. Guards do not name them, so a
//!   renewal that carries steps has a later expiry than the one before.
//! * A record that names an application applies only to that application, until it expires: other
//!   applications neither get its result nor take it over.
//! * A worker recognises its own writes by `owner`, or by `last_owner` after it gave the key up. If the
//!   response to a write was lost, the worker reads the record to find out whether it was applied.
//! * A claim of an operation that is a mutex is deleted by its owner when the handler has ended
//!   ([`Settlement::Forget`]). A late deletion finds another owner, or nothing.
//! * A record in progress never expires before its lease, so that a server-side TTL never frees a
//!   key that is held.

mod admit;
mod settle;

pub use self::{
    admit::{Claim, Finding, Freed, Held, admit, free},
    settle::{Settled, Settlement},
};

#[expect(unused_imports, reason = "for the links in the module documentation")]
use crate::store::Guard;
