//! What users meet: functions called as Lambda calls them, and what they answer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod asynchronous;
mod bounds;
mod brokers;
mod bus_lists;
mod busy;
mod cache;
mod calls;
mod dialects;
mod direct;
mod diverting;
mod diverting_failures;
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
mod misplaced;
mod mixed;
mod new_invocations;
mod operations;
mod pipes;
mod producers;
mod run;
mod run_results;
mod s3;
mod samples;
mod secrets;
mod secrets_capture;
mod several_sources;
mod sqs;
mod sqs_bad_records;
mod sqs_order;
mod streams;
mod support;
mod support_streams;
mod unknown_events;
mod views;
mod whole_records;
mod windows;
