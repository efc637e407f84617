//! The command `keys` as a user runs it: the key of each record, and records with equal keys.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod mistakes;
mod output;
#[path = "../ran/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod ran;
mod records;
mod requests;
mod support;
