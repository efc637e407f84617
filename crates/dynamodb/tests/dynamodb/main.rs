//! The store against the embedded DynamoDB: one program, because each would be linked for itself.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod ambiguity;
mod bound;
mod browse;
mod conformance;
mod faults;
mod index;
mod other_forms;
mod powertools;
mod powertools_keys;
mod results;
mod secrecy;
mod signing;
mod support;
mod transactions;
mod wire;
