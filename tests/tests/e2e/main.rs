//! Tests of whole functions, from their event sources to their tables: a real process, Lambda's
//! Runtime API, sources that redeliver, and an implementation of DynamoDB's API.
//!
//! Most tests run the orders function of `crates/orders`, as `template.yaml` deploys it
//! (`World::new()`). The functions are:
//!
//! | function | source | tests |
//! |---|---|---|
//! | `orders()` | `crates/orders` | `bad_input`, `deaths`, `outages`, `permissions`, `races`, `samples` |
//! | `scripted_orders()`, whose orders ask for faults | `tests/src/bin/scripted_orders.rs` | `chaos`, `mutex`, `outbox`, `recovery`, `transactions`, and single tests of `costs`, `deaths`, `permissions` |
//! | `every_source()`, scripted too | `tests/src/bin/every_source.rs` | `every_source`, single tests of `samples` |
//! | `idle()`, whose handler awaits nothing | `tests/src/bin/idle.rs` | `costs` |
//!
//! `calls` makes many calls of `run` in this process, because it counts the requests of one.
//!
//! Each other test starts a new local Lambda. If something has to happen at an exact moment, a gate holds a
//! request until then. If a lease has to end, the test waits in real time, because the function's
//! process has a real clock.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

mod support;

mod bad_input;
mod calls;
mod chaos;
mod costs;
mod deaths;
mod every_source;
mod mutex;
mod outages;
mod outbox;
mod permissions;
mod races;
mod recovery;
mod samples;
mod transactions;
