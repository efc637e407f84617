//! The store in a real server, which the tests start: the conformance suite, a cluster that fails over, and servers that
//! are killed, restarted, stopped and cut off.
//!
//! They need `redis-server`, so `cargo test` does not run them: `bash tests/run redis` does. `IDEMPOTENCY_REDIS_SERVER` names
//! another server program, such as `valkey-server`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod browsing;
mod cluster;
mod conformance;
mod connecting;
mod cut_off;
mod faults;
mod memory;
mod server;
#[path = "../../../../tests/servers.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod servers;
mod start;
#[path = "../../../../tests/writes.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod writes;
