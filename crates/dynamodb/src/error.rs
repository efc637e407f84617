//! Errors that name the remedy and contain no data.
//!
//! The errors of the SDK carry whole requests and responses, keys and payloads included, in their
//! `Debug` form. This module passes on only the error code, the message up to its first quotation,
//! and the request id.

use std::{error::Error, fmt};

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::RequestId,
};
use lambda_idempotency_core::{
    retry::{self, chain},
    store::StoreErrorKind,
};

use crate::{
    codes::service_failure,
    config::Config,
    credentials::{Missing, missing_credentials},
    item::Corrupt,
    retry::TimedOut,
};

/// The request that an error names.
#[derive(Clone, Copy)]
pub(crate) struct Doing<'a> {
    pub(crate) config: &'a Config,
    /// The API operation.
    pub(crate) operation: &'static str,
    /// The permissions it needs, without `dynamodb:`.
    pub(crate) permission: &'a str,
}

impl fmt::Display for Doing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on DynamoDB table {}", self.operation, self.config.table)
    }
}

/// A failed request, and whether another may succeed.
pub(crate) type Failure = retry::Failure;

pub(crate) fn timed_out(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Failure {
    Failure::unanswered(format!("{doing} had no answer within {} ms", limit.as_millis()))
}

/// A request that was shared with other calls ended without an answer for this one, or not in time.
pub(crate) fn unanswered_in_group(config: &Config) -> Failure {
    let table = &config.table;
    Failure::unanswered(format!("a shared request to DynamoDB table {table} had no answer in time"))
}

/// There was no time for even one request.
pub(crate) fn too_late(config: &Config) -> Failure {
    let context = format!("no time left to reach DynamoDB table {}", config.table);
    Failure::new(StoreErrorKind::Unavailable, context)
}

/// DynamoDB answered for some keys and left these unprocessed.
pub(crate) fn unprocessed(config: &Config) -> Failure {
    let context = format!("DynamoDB table {} left keys unread: throttled", config.table);
    Failure::transient(StoreErrorKind::Throttled, context)
}

/// The table's key is not the one that the attributes name.
pub(crate) fn other_schema(config: &Config) -> Failure {
    let context = format!("DynamoDB table {}: {}", config.table, config.attributes.needed_key());
    Failure::new(StoreErrorKind::Misconfigured, context)
}

pub(crate) fn contended(config: &Config) -> Failure {
    let context = format!("a record in DynamoDB table {} came and went at each try", config.table);
    Failure::new(StoreErrorKind::Contended, context)
}

pub(crate) fn corrupt(config: &Config, Corrupt { attribute, problem }: Corrupt) -> Failure {
    let context = format!(
        "an item in DynamoDB table {} is not an idempotency record: attribute `{attribute}` \
         {problem}",
        config.table
    );
    Failure::new(StoreErrorKind::Corrupt, context)
}

/// Classifies an error of the SDK.
pub(crate) fn sdk_failure<E>(doing: Doing<'_>, error: &SdkError<E>) -> Failure
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    match error {
        SdkError::ServiceError(service) => {
            let meta = service.err().meta();
            let status = service.raw().status().as_u16();
            let failure = service_failure(doing, meta.code(), meta.message(), meta.request_id());
            if failure.retry || status < 500 {
                return failure;
            }
            let context = format!("{doing} ended with HTTP status {status}");
            Failure::unanswered(context).because(failure.cause().unwrap_or_default())
        }
        SdkError::DispatchFailure(dispatch) => {
            let cause =
                dispatch.as_connector_error().map_or_else(String::new, |error| chain(error));
            if let Some(missing) = missing_credentials(dispatch.as_connector_error()) {
                return no_credentials(doing, missing).because(cause);
            }
            let failure = Failure::unanswered(format!("{doing} did not reach DynamoDB"));
            // The connection was refused, so nothing was sent.
            let in_doubt = !was_refused(dispatch.as_connector_error());
            failure.with_doubt(in_doubt).because(cause)
        }
        SdkError::TimeoutError(_) => {
            Failure::unanswered(format!("{doing} had no answer within the client's time limit"))
        }
        SdkError::ResponseError(_) => {
            Failure::unanswered(format!("{doing} was answered with something unreadable"))
        }
        _ => {
            Failure::new(StoreErrorKind::Refused, format!("{doing} could not be put in a request"))
        }
    }
}

/// A request that was not sent, because there were no credentials to sign it with.
fn no_credentials(doing: Doing<'_>, missing: Missing) -> Failure {
    let context = format!("{doing} was not sent: no usable AWS credentials");
    match missing {
        Missing::NotNow => Failure::transient(StoreErrorKind::Unavailable, context),
        Missing::NotConfigured => Failure::new(StoreErrorKind::Denied, context),
    }
}

/// Whether the connection was refused.
fn was_refused(error: Option<&(impl Error + 'static)>) -> bool {
    let mut next = error.map(|error| error as &dyn Error);
    while let Some(error) = next {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionRefused) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
