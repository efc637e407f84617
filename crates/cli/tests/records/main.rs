//! The command `records` as a user runs it, against an embedded DynamoDB.
//!
//! Pages of text are compared with the files of this folder. With `RECORDS_UPDATE=1` the files are written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test may panic, and reads the clock"
)]

mod changes;
mod looking;
#[path = "../ran/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod ran;
mod support;
mod tables;
mod verbs;
