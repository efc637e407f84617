//! The batch engine, by scenario, in simulated time.

#![allow(clippy::unwrap_used, reason = "a test")]

mod applications;
mod busy_queue;
mod claiming;
mod coalescing;
mod conflict;
mod deadline;
mod effects;
mod fuzz;
mod given_up;
mod handles;
mod in_process;
mod kept_steps;
mod killers;
mod large;
mod late;
mod leases;
mod left_messages;
mod limits;
mod looks;
mod memory;
mod mutex;
mod order;
mod outbox;
mod panicking_store;
mod passing;
mod policies;
mod post;
mod quarantine;
mod queue;
mod refused_steps;
mod retention;
mod scheduling;
mod settling;
mod slow_settlements;
mod steps;
mod support;
mod throttled_suspects;
