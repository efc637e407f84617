//! The store with a real PostgreSQL, which the tests start themselves, and through a real PgBouncer. `cargo test` does not run
//! this program, because both have to be installed:
//!
//! ```console
//! $ bash tests/run postgres
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of a test"
)]

mod conflicts;
mod conformance;
mod cost;
mod crowded;
mod effects;
mod errors;
mod failing_effects;
mod faults;
mod hosts;
#[path = "../../../../tests/servers.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod servers;
mod sharing;
mod sweeping;
mod table;
mod tls;
mod triggers;
#[path = "../../../../tests/writes.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod writes;
