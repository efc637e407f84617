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
use lambda_idempotency_core::store::{StoreError, StoreErrorKind};

use crate::{
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
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: StoreErrorKind,
    context: String,
    cause: Option<Cause>,
    /// Another request may succeed.
    pub(crate) retry: bool,
    /// The write may have been applied, or may still be applied.
    pub(crate) in_doubt: bool,
}

/// The message of DynamoDB or of the connection.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
struct Cause(String);

impl Failure {
    pub(crate) fn new(kind: StoreErrorKind, context: String) -> Self {
        Self { kind, context, cause: None, retry: false, in_doubt: false }
    }

    fn transient(kind: StoreErrorKind, context: String) -> Self {
        Self { retry: true, ..Self::new(kind, context) }
    }

    /// No response, or a response without information.
    pub(crate) fn unanswered(context: String) -> Self {
        Self { in_doubt: true, ..Self::transient(StoreErrorKind::Unavailable, context) }
    }

    pub(crate) fn timed_out(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Self {
        Self::unanswered(format!("{doing} had no answer within {} ms", limit.as_millis()))
    }

    /// A request that was shared with other calls ended without an answer for this one, or not in time.
    pub(crate) fn unanswered_in_group(config: &Config) -> Self {
        let table = &config.table;
        Self::unanswered(format!(
            "a shared request to DynamoDB table {table} had no answer in time"
        ))
    }

    /// There was no time for even one request.
    pub(crate) fn too_late(config: &Config) -> Self {
        let context = format!("no time left to reach DynamoDB table {}", config.table);
        Self::new(StoreErrorKind::Unavailable, context)
    }

    /// DynamoDB answered for some keys and left these unprocessed.
    pub(crate) fn unprocessed(config: &Config) -> Self {
        let context = format!("DynamoDB table {} left keys unread: throttled", config.table);
        Self::transient(StoreErrorKind::Throttled, context)
    }

    /// The table's key is not the one that the attributes name.
    pub(crate) fn other_schema(config: &Config) -> Self {
        let context =
            format!("DynamoDB table {}: {}", config.table, config.attributes.needed_key());
        Self::new(StoreErrorKind::Misconfigured, context)
    }

    pub(crate) fn contended(config: &Config) -> Self {
        let context =
            format!("a record in DynamoDB table {} came and went at each try", config.table);
        Self::new(StoreErrorKind::Contended, context)
    }

    pub(crate) fn corrupt(config: &Config, Corrupt { attribute, problem }: Corrupt) -> Self {
        let context = format!(
            "an item in DynamoDB table {} is not an idempotency record: attribute `{attribute}` \
             {problem}",
            config.table
        );
        Self::new(StoreErrorKind::Corrupt, context)
    }

    fn because(mut self, cause: String) -> Self {
        self.cause = Some(Cause(cause));
        self
    }

    pub(crate) const fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// The error to report, given whether an earlier attempt was left in doubt.
    pub(crate) fn report(self, in_doubt: bool) -> StoreError {
        let context = if in_doubt && !self.in_doubt {
            let context = self.context;
            format!("an attempt had no answer and may have been applied; after it: {context}")
        } else {
            self.context
        };
        let error = StoreError::new(self.kind, context).with_doubt(in_doubt || self.in_doubt);
        match self.cause {
            Some(cause) => error.with_source(cause),
            None => error,
        }
    }
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
            Failure { cause: failure.cause, ..Failure::unanswered(context) }
        }
        SdkError::DispatchFailure(dispatch) => {
            let cause = chain(dispatch.as_connector_error());
            if let Some(missing) = missing_credentials(dispatch.as_connector_error()) {
                return no_credentials(doing, missing).because(cause);
            }
            let failure = Failure::unanswered(format!("{doing} did not reach DynamoDB"));
            // The connection was refused, so nothing was sent.
            let in_doubt = !was_refused(dispatch.as_connector_error());
            Failure { in_doubt, ..failure }.because(cause)
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

/// Classifies an error code of a request or of one member of a batch.
///
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>
pub(crate) fn service_failure(
    doing: Doing<'_>,
    code: Option<&str>,
    message: Option<&str>,
    request_id: Option<&str>,
) -> Failure {
    let code = code.unwrap_or("UnknownError");
    let message = unquoted(message.unwrap_or_default());
    let Config { table, region, .. } = doing.config;
    // A batch's members say `ThrottlingError` where a request says `ThrottlingException`.
    let class = code.strip_suffix("Exception").or_else(|| code.strip_suffix("Error"));
    let class = class.unwrap_or(code);
    let failure = match class {
        // The last three are not in the documentation of DynamoDB; the SDKs take them for throttling
        // whichever service sends them.
        "ProvisionedThroughputExceeded"
        | "RequestLimitExceeded"
        | "Throttling"
        | "Throttled"
        | "RequestThrottled"
        | "TooManyRequests" => {
            Failure::transient(StoreErrorKind::Throttled, format!("{doing} was throttled"))
        }
        "TransactionConflict" | "ReplicatedWriteConflict" => Failure::transient(
            StoreErrorKind::Contended,
            format!("{doing} met another write to the same item"),
        ),
        // Both speak of an earlier request with the same token, which may have been applied.
        "TransactionInProgress" => Failure {
            in_doubt: true,
            ..Failure::transient(
                StoreErrorKind::Contended,
                format!("{doing}: the same transaction is still being processed"),
            )
        },
        "IdempotentParameterMismatch" => Failure {
            in_doubt: true,
            ..Failure::new(
                StoreErrorKind::Refused,
                format!("{doing}: its token was used for another transaction; report this mistake"),
            )
        },
        "InternalServer" | "InternalFailure" | "ServiceUnavailable" => {
            Failure::unanswered(format!("{doing} met an error of the server"))
        }
        // The server waited too long for the request, which the SDKs take for transient. How much of
        // the request had arrived is not known.
        "RequestTimeout" => Failure::unanswered(format!("{doing} reached the server too slowly")),
        _ if is_clock_skew(class, &message) => Failure::transient(
            StoreErrorKind::Unavailable,
            format!("{doing}: the time of the request was refused; correct this machine's clock"),
        ),
        "AccessDenied" | "NotAuthorized" => Failure::new(
            StoreErrorKind::Denied,
            format!("{doing}: the role needs {} on the table", permissions(doing.permission)),
        ),
        // None of these is retried. The next request would have the same credentials: the SDK replaces
        // them when their own expiry comes, whatever DynamoDB says of them.
        "UnrecognizedClient"
        | "InvalidClientTokenId"
        | "ExpiredToken"
        | "InvalidSignature"
        | "IncompleteSignature"
        | "MissingAuthenticationToken"
        | "SignatureDoesNotMatch" => {
            Failure::new(StoreErrorKind::Denied, format!("{doing}: the credentials were refused"))
        }
        "ResourceNotFound" => Failure::new(
            StoreErrorKind::Misconfigured,
            format!("{doing}: table {table} does not exist in region {region}, or is not active"),
        ),
        "Validation" if message.contains("size") && message.contains("exceeded") => {
            Failure::new(StoreErrorKind::TooLarge, format!("{doing}: the item is too large"))
        }
        "Validation" if of_the_key(&message) => Failure::new(
            StoreErrorKind::Misconfigured,
            format!("{doing}: {}", doing.config.attributes.needed_key()),
        ),
        _ => Failure::new(StoreErrorKind::Refused, format!("{doing} was refused")),
    };
    let mut cause = if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") };
    if let Some(id) = request_id {
        cause.push_str(&format!(" (request {id})"));
    }
    failure.because(cause)
}

/// Whether the request was refused for the time that it was signed with.
///
/// Such a request was not applied, and the next may succeed: the SDK compares the `Date` of each
/// response with its own clock and signs the next request with the server's time.
///
/// A wrong secret key has the same code as a wrong time, `InvalidSignatureException`. It stays wrong,
/// so only the messages of a wrong time count.
fn is_clock_skew(class: &str, message: &str) -> bool {
    match class {
        "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture" => true,
        "InvalidSignature" | "SignatureDoesNotMatch" => {
            let signs = ["Signature expired", "Signature not yet current"];
            signs.iter().any(|sign| message.starts_with(sign))
        }
        _ => false,
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

/// Whether a `ValidationException` is about the table's key.
fn of_the_key(message: &str) -> bool {
    let signs = ["does not match the schema", "Missing the key", "Type mismatch for key"];
    signs.iter().any(|sign| message.contains(sign))
}

/// After these words a message repeats a value without quotation marks.
const REPEATS: &str = "cannot be converted to a numeric value";

/// The message up to its first quotation, because the rest may be data.
pub(crate) fn unquoted(message: &str) -> String {
    let quoted = message.find(['\'', '"', '{', '[', '`']);
    let repeated = message.find(REPEATS).map(|begin| begin.saturating_add(REPEATS.len()));
    let end = quoted.into_iter().chain(repeated).min().unwrap_or(message.len());
    message.get(..end).unwrap_or_default().trim_end().to_owned()
}

fn permissions(names: &str) -> String {
    let names: Vec<_> = names.split(' ').map(|name| format!("dynamodb:{name}")).collect();
    let hint = if names.iter().any(|name| name.contains("PartiQL")) {
        " (or use `DynamoDbStoreBuilder::without_partiql`)"
    } else {
        ""
    };
    format!("{}{hint}", names.join(", "))
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

/// An error of the connection and its causes. They do not quote the request.
fn chain(error: Option<&(impl Error + 'static)>) -> String {
    let mut text = String::new();
    let mut next = error.map(|error| error as &dyn Error);
    while let Some(error) = next {
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
