//! Keys, by property: distinct events never share one, equal events always do, and nothing that
//! users or producers write can make the library panic.
//!
//! They must hold whatever features of `serde_json` the user's program turns on; the gate runs them
//! under several.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod bodies;
mod bounds;
mod compliance;
mod distinct;
mod equal;
mod exact;
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
mod producer;
mod reference;
mod robust;
mod sparse;
mod support;
