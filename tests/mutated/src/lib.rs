//! The sources of the engine's machine, compiled once more beside [`rules`] that can be left out one at a time.
//!
//! `rules.patch` is a unified diff (`diff -U2 -r`) that asks `keeps(Rule::..)` wherever a rule of the machine can be left out. The
//! build script applies it to a copy, and fails if a part of it does not fit any more: a change of the machine next to a
//! rule changes the patch, too. Functions contain none of this.

pub mod rules;

/// The types that the machine imports from the engine.
mod delivery {
    pub(crate) use lambda_idempotency_engine::batch::{AfterFailure, Returned};
}

#[path = "../../../crates/engine/src/unanswered.rs"]
mod unanswered;

#[allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "of the engine's own sources, some are not needed here"
)]
mod copied {
    include!(concat!(env!("OUT_DIR"), "/machine.rs"));
}

pub use copied::machine;
