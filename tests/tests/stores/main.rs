//! Whole functions with other stores than DynamoDB: real processes, Lambda's Runtime API, and servers that the tests
//! start. `cargo test` does not run this program, because it needs servers that have to be installed:
//!
//! ```console
//! $ bash tests/run stores
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "../../servers.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod servers;

#[path = "../e2e/support.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

mod deaths;
mod start;
mod transactions;
