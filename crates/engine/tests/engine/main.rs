//! The batch engine, by scenario, in simulated time.

#![allow(clippy::unwrap_used, reason = "a test")]

mod applications;
mod claiming;
mod coalescing;
mod conflict;
mod contention;
mod contract;
mod deadline;
mod diverting;
mod diverting_again;
mod effects;
mod fuzz;
mod handles;
mod in_process;
mod isolation;
mod isolation_figures;
mod isolation_waits;
mod killers;
mod large;
mod late;
mod leases;
mod limits;
mod looks;
mod lost_leaders;
mod memory;
mod mutex;
mod order;
mod outbox;
mod panicking_store;
mod policies;
mod quarantine;
mod scheduling;
mod settling;
mod slow_settlements;
mod steps;
mod support;
mod throttled;
mod throttled_suspects;
mod unsent;
mod whole_batches;
