//! The store with a real PostgreSQL, which the tests start themselves, and through a real PgBouncer. They need
//! both programs, which `cargo test` does not install, so they are ignored unless they are selected:
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
