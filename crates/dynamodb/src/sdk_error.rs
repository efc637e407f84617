//! The errors of the SDK.
//!
//! They carry whole requests and responses, keys and payloads included, in their `Debug` form. This module passes on only
//! the error code, the message up to its first quotation, and the request id.

use std::error::Error;

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::RequestId,
};
use lambda_idempotency_core::{retry::chain, store::StoreErrorKind};

use crate::{
    codes::service_failure,
    credentials::{Missing, missing_credentials},
    error::{Doing, Failure},
};

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
#[path = "sdk_error_tests.rs"]
mod tests;
