//! The sources of the engine's machine and of the core's admission, compiled once more beside rules that can be left out one
//! at a time.
//!
//! `rules.patch` has the changes: wherever a rule can be left out, it asks `keeps("..")`. The build script applies it to a
//! copy, and fails if a part of it does not fit any more: a change next to a rule changes the patch, too. Functions contain
//! none of this. `tests/model/rules.txt` says what goes wrong without each rule.

#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::private_intra_doc_links,
    reason = "nobody reads the pages of the copies"
)]

mod judged;

use std::cell::Cell;

pub use copied::machine;
pub use judged::{Misjudged, misjudged};

#[allow(
    clippy::all,
    clippy::pedantic,
    clippy::nursery,
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "of the sources, some are not needed here, and the patch is short"
)]
mod copied {
    include!(concat!(env!("OUT_DIR"), "/copied.rs"));
}

/// The core, with the copied admission in the place of its own.
pub mod core {
    pub use crate::judged::admission;
    pub use lambda_idempotency_core::*;
}

/// The types that the machine imports from the engine.
mod delivery {
    pub(crate) use lambda_idempotency_engine::batch::Returned;
}

thread_local! {
    static LEFT_OUT: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Whether this rule is kept.
#[must_use]
pub fn keeps(rule: &str) -> bool {
    LEFT_OUT.get() != Some(rule)
}

/// Leaves a rule out on this thread. The checker starts its own threads, so each step calls this first.
pub fn leave_out(rule: Option<&'static str>) {
    LEFT_OUT.set(rule);
}
