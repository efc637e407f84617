//! What the invocations of one process share: which keys are being worked on, and which are done.
//!
//! Most Lambda processes take one event at a time. Managed Instances hand one process many at once,
//! and a duplicate may then run beside its original, in the same memory. Asking the store about it
//! would work, and cost a request for each look; this module answers from memory instead:
//!
//! * *SingleFlight*: of the invocations that want a key, one claims it in the store; the others wait for
//!   what it learns.
//! * *Completed keys*: what was seen completed answers its duplicates for a short while, within the
//!   bounds of a [`Cache`]. This helps every warm process, concurrent or not.
//!
//! Neither decides anything. A claim is still one conditional write that may lose; what memory holds
//! is a record that was in the store, and it is judged by [`admission`](lambda_idempotency_core::admission) as if it
//! had just been read. Losing all of it costs requests, never a promise.
//!
//! The clones of one [`Engine`](crate::batch::Engine) share both. Nothing is global: two engines
//! with two stores know nothing of each other.

mod cache;
mod completed;
mod single_flight;
mod sync;

// Beside the sources, not in them: `tests/shuttle` compiles those with another lock.
#[cfg(test)]
mod completed_tests;
#[cfg(test)]
mod single_flight_tests;

pub use cache::Cache;
pub(crate) use completed::Completed;
pub(crate) use single_flight::{Joined, Leader, SingleFlight};
