//! HTTP requests with an `Idempotency-Key`: callers, keys, responses, real events.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod axum_routes;
mod caller_requests;
mod callers;
mod callers_by_iam;
mod calls;
#[path = "../behaviour/secrecy/capture.rs"]
#[allow(dead_code, reason = "shared with `behaviour`, which uses all of it")]
mod capture;
mod events;
mod inspection;
mod keys;
mod keys_in_bodies;
mod messages;
mod other_services;
mod responses;
mod sameness;
mod secrets;
mod support;
mod verifying;
#[path = "../behaviour/wire.rs"]
mod wire;
