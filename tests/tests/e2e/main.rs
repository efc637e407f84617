//! The orders function as it is deployed, driven from its event sources to its tables: a process of
//! its own, Lambda's Runtime API, sources that redeliver, an implementation of DynamoDB's API.
//!
//! Each test starts a Lambda of its own. What has to happen at an exact moment is held there by a
//! gate; where a lease has to end, the test waits for the real clock, because the process does.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod support;

mod asynchronous;
mod at_once;
mod bad_input;
mod chaos;
mod costs;
mod deaths;
mod duplicates;
mod every_source;
mod failures;
mod keys;
mod outages;
mod permissions;
mod races;
mod samples;
mod secrecy;
mod sources;
