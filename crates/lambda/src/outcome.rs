//! What some outcomes hold: see [`Outcome`](crate::Outcome).

pub use lambda_idempotency_core::admission::Freed;
pub use lambda_idempotency_core::outcome::{Completion, Foreign, NotStarted, Rejected, ResultKept};
