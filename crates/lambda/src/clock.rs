//! The clock that is the default. The trait and its times are [`Clock`](crate::Clock) and
//! [`Timestamp`](crate::Timestamp).

pub use lambda_idempotency_core::clock::SystemClock;
