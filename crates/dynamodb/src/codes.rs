//! The error codes of DynamoDB, of a request and of one member of a batch.

use lambda_idempotency_core::{retry, store::StoreErrorKind};

use crate::{
    config::Config,
    error::{Doing, Failure},
};

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
        "TransactionInProgress" => Failure::transient(
            StoreErrorKind::Contended,
            format!("{doing}: the same transaction is still being processed"),
        )
        .with_doubt(true),
        "IdempotentParameterMismatch" => Failure::new(
            StoreErrorKind::Refused,
            format!("{doing}: its token was used for another transaction; report this mistake"),
        )
        .with_doubt(true),
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

/// Whether a `ValidationException` is about the table's key.
fn of_the_key(message: &str) -> bool {
    let signs = ["does not match the schema", "Missing the key", "Type mismatch for key"];
    signs.iter().any(|sign| message.contains(sign))
}

/// After these words a message repeats a value without quotation marks.
const REPEATS: &str = "cannot be converted to a numeric value";

/// The message up to its first quotation, because the rest may be data.
pub(crate) fn unquoted(message: &str) -> String {
    let message = retry::unquoted(message);
    let end =
        message.find(REPEATS).map_or(message.len(), |begin| begin.saturating_add(REPEATS.len()));
    message.get(..end).unwrap_or_default().to_owned()
}

pub(crate) fn permissions(names: &str) -> String {
    let names: Vec<_> = names.split(' ').map(|name| format!("dynamodb:{name}")).collect();
    let hint = if names.iter().any(|name| name.contains("PartiQL")) {
        " (or use `DynamoDbStoreBuilder::without_partiql`)"
    } else {
        ""
    };
    format!("{}{hint}", names.join(", "))
}
