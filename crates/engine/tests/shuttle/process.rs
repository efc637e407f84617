//! The sources of `process`, with a lock that yields wherever a thread could be interrupted.

mod sync {
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
}

#[path = "../../src/process/cache.rs"]
mod cache;
#[path = "../../src/process/completed.rs"]
mod completed;
#[path = "../../src/process/single_flight.rs"]
mod single_flight;

#[path = "mutants.rs"]
pub(crate) mod mutants;

pub(crate) use cache::Cache;
pub(crate) use completed::Completed;
pub(crate) use single_flight::{Joined, Leader, SingleFlight};
