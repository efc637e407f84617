//! The sources of `process`, over a lock that gives way wherever a thread could be interrupted.

mod sync {
    pub(super) use shuttle::sync::{Mutex, MutexGuard};
}

#[path = "../../src/process/cache.rs"]
mod cache;
#[path = "../../src/process/completed.rs"]
mod completed;
#[path = "../../src/process/flights.rs"]
mod flights;

#[path = "mutants.rs"]
pub(crate) mod mutants;

pub(crate) use cache::Cache;
pub(crate) use completed::Completed;
pub(crate) use flights::{Boarding, Flights, Lead};
