//! What tests of idempotency need: a conformance suite for stores.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test library: a panic is how it reports a failure"
)]

pub mod conformance;
