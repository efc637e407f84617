//! The consumed capacity of requests: asked for only if the call of the store is measured.

use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use lambda_idempotency_core::usage::{self, Usage};

/// Whether a request is to say what it consumed.
pub(crate) fn wanted() -> Option<ReturnConsumedCapacity> {
    usage::is_measured().then_some(ReturnConsumedCapacity::Total)
}

/// Notes what a request has consumed.
pub(crate) fn consumed<'c>(consumed: impl IntoIterator<Item = &'c ConsumedCapacity>) {
    let capacity_units = consumed.into_iter().filter_map(|one| one.capacity_units).sum();
    usage::add(Usage { requests: 0, capacity_units });
}
