//! What the invocations of one process share: which keys were seen completed.
//!
//! Most Lambda processes take one event at a time; Managed Instances hand one process many at once. What was seen
//! completed answers its duplicates for a short while, within the bounds of a [`Cache`]. A key that another invocation of
//! the process works on is claimed in the store, as between two processes.
//!
//! Nothing is decided here. What memory holds is a record that was in the store, and it is judged by
//! [`admission`](lambda_idempotency_core::admission) as if it had just been read. Losing all of it costs requests, never
//! a promise.
//!
//! The clones of one [`Engine`](crate::batch::Engine) share it. Nothing is global: two engines with two stores know
//! nothing of each other.

mod cache;
mod completed;

#[cfg(test)]
mod completed_tests;

pub use cache::Cache;
pub(crate) use completed::Completed;
