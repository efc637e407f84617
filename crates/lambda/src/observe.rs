//! What is reported: the outcome of each delivery, each call of the store, and the end of each invocation.
//!
//! An [`Observer`] of your own is added with [`Idempotency::with_observer`](crate::Idempotency::with_observer).

pub use lambda_idempotency_engine::observe::{
    BatchEnd, Observer, Report, StoreCall, StorePurpose, TracingObserver,
};

#[cfg(feature = "metrics")]
pub use crate::metrics::CloudWatchMetrics;
