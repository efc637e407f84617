//! Time: the [`Clock`] that is read, and its [`Timestamp`]s.

pub use lambda_idempotency_core::clock::{Clock, SystemClock, Timestamp};
