//! The API that users call: functions are invoked as Lambda invokes them, and their answers compared.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod applications;
mod asynchronous;
mod bounds;
mod brokers;
mod bus_lists;
mod busy;
mod cache;
mod calls;
mod direct;
mod diverting;
mod diverting_failures;
mod diverting_logs;
mod documents;
mod envelopes;
mod error_messages;
mod event_layer;
mod filters;
mod identities;
mod inspection;
mod kafka;
mod kept_results;
mod keys;
mod log_filters;
mod misplaced;
mod mixed;
mod new_invocations;
mod operations;
mod panics;
mod pipes;
mod powertools;
mod producers;
mod provenance;
mod run;
mod run_results;
mod s3;
mod samples;
mod secrets;
mod secrets_capture;
mod several_sources;
mod spans;
mod sqs;
mod sqs_bad_records;
mod sqs_order;
mod streams;
mod subkeys;
mod support;
mod support_streams;
mod unknown_events;
mod views;
mod volatile;
mod whole_records;

mod windows;
