//! Properties of keys: distinct events never share a key, equal events always do, and no input of
//! users or producers makes the library panic.
//!
//! They must hold for all features of `serde_json` that a user's program may enable; `tests/run` tests
//! several.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod bodies;
mod bounds;
mod distinct;
mod equal;
mod formats;
mod functions;
mod fuzz;
mod golden;
mod json;
mod lookalikes;
mod missing;
mod mistakes;
mod numbers;
mod optional;
mod powertools;
mod producer;
mod robust;
mod sparse;
mod subset;
mod support;
mod unwinding;
