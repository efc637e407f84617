//! What users meet: functions called as Lambda calls them, and what they answer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod asynchronous;
mod bounds;
mod event_layer;
mod identities;
mod mixed;
mod operations;
mod run;
mod run_results;
mod secrets;
mod secrets_capture;
mod sqs;
mod sqs_bad_records;
mod sqs_order;
mod support;
mod unknown_events;
