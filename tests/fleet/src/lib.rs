//! A fleet of functions in virtual time: the real engine, with its real time limits and pauses, against a simulated
//! DynamoDB table and a simulated queue.
//!
//! Everything runs in one process on one thread, and a seed decides what happens, so that a run can be repeated:
//!
//! ```console
//! $ cargo run --release -p lambda-idempotency-fleet -- --functions 1000 --records 1000000 --fault outage
//! ```
//!
//! | module | is |
//! |---|---|
//! | [`scenario`] | what is simulated, and what goes wrong |
//! | [`runs`], [`record`] | the runs whose figures the guide shows, and the file that has these |
//! | [`table`] | the table: partitions, throttling, lost answers; and the store of a function |
//! | [`queue`], `pollers` | SQS, and how Lambda polls it |
//! | `function` | an execution environment with the engine and its handlers |
//! | [`ledger`], [`figures`], [`report`] | what happened, and whether it is what the guarantees say |
//! | [`time`], [`executor`], [`random`] | virtual time, tasks and chance |

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test: a panic is how it reports that the simulation itself is wrong"
)]

pub mod executor;
pub mod figures;
mod function;
pub mod ledger;
mod pollers;
pub mod queue;
pub mod random;
pub mod record;
pub mod report;
pub mod runs;
pub mod scenario;
pub mod table;
pub mod time;
mod world;

use std::sync::Arc;

use crate::{report::Report, scenario::Scenario, world::World};

/// Simulates a scenario until all records are processed or stuck.
#[must_use]
pub fn simulate(scenario: Scenario) -> Report {
    let world = Arc::new(World::new(scenario));
    let mut tasks: Vec<executor::Task<'_>> = vec![Box::pin(pollers::scale(Arc::clone(&world)))];
    for number in 0..world.scenario.functions {
        tasks.push(Box::pin(pollers::poll(Arc::clone(&world), number)));
    }
    let stuck = executor::run(&world.timeline, tasks);
    assert_eq!(stuck, 0, "functions wait for something that never happens");
    Report::of(&world)
}
