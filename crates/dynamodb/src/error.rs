//! Errors that name the request and the table, the remedy where there is one, and no data.
//!
//! The errors of the SDK carry whole requests and responses, keys and payloads included, in their `Debug` form. Only the
//! error code, the message up to its first quotation, and the request id are passed on.

use std::{error::Error, fmt};

use aws_sdk_dynamodb::{
    error::{ProvideErrorMetadata, SdkError},
    operation::RequestId,
};
use lambda_idempotency_core::{
    retry::{self, TimedOut, chain},
    store::StoreErrorKind,
};

use crate::{
    config::{Config, MOST_REQUESTS},
    connection::{NoCredentials, missing_credentials},
    item::Corrupt,
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
pub(crate) type Failure = retry::RequestFailure;

pub(crate) fn timed_out(doing: Doing<'_>, TimedOut(limit): TimedOut) -> Failure {
    Failure::unanswered(format!("{doing} had no answer within {} ms", limit.as_millis()))
}

/// There was no time for even one request.
pub(crate) fn too_late(config: &Config) -> Failure {
    let context = format!("no time left to reach DynamoDB table {}", config.table);
    Failure::new(StoreErrorKind::Unavailable, context)
}

/// Other calls of this process had all requests that it may have on their way, until there was no time left.
pub(crate) fn all_in_use(config: &Config, kind: StoreErrorKind) -> Failure {
    let context = format!(
        "no time left to reach DynamoDB table {}: {MOST_REQUESTS} other requests of this process were on their way; make \
         fewer calls at a time, or several payloads one batch with `run_many`",
        config.table
    );
    Failure::new(kind, context)
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
    let context = format!(
        "a record in DynamoDB table {} was created and deleted between the requests of this call, again and again",
        config.table
    );
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
fn no_credentials(doing: Doing<'_>, missing: NoCredentials) -> Failure {
    let context = format!("{doing} was not sent: no usable AWS credentials");
    match missing {
        NoCredentials::NotNow => Failure::transient(StoreErrorKind::Unavailable, context),
        NoCredentials::NotConfigured => Failure::new(StoreErrorKind::Denied, context),
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

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::{
        Client,
        config::{BehaviorVersion, Region},
        error::ErrorMetadata,
        operation::put_item::PutItemError,
    };
    use aws_smithy_runtime_api::{
        client::result::ConnectorError,
        http::{Response as HttpResponse, StatusCode},
    };
    use aws_smithy_types::body::SdkBody;

    use super::*;
    use crate::store::DynamoDbStore;

    fn config() -> std::sync::Arc<Config> {
        let config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .region(Region::new("eu-west-1"))
            .build();
        DynamoDbStore::builder(Client::from_conf(config), "orders").build().unwrap().config
    }

    fn failure(code: &str, message: &str) -> Failure {
        let config = config();
        let doing = Doing { config: &config, operation: "PutItem", permission: "PutItem" };
        service_failure(doing, Some(code), Some(message), Some("R1"))
    }

    #[test]
    fn each_code_has_its_kind() {
        use StoreErrorKind::{
            Contended, Denied, Misconfigured, Refused, Throttled, TooLarge, Unavailable,
        };
        for (code, kind, retry, in_doubt) in [
            ("ProvisionedThroughputExceededException", Throttled, true, false),
            ("ProvisionedThroughputExceeded", Throttled, true, false),
            ("ThrottlingError", Throttled, true, false),
            ("RequestLimitExceeded", Throttled, true, false),
            ("TransactionConflict", Contended, true, false),
            ("ReplicatedWriteConflictException", Contended, true, false),
            ("RequestThrottledException", Throttled, true, false),
            ("TooManyRequestsException", Throttled, true, false),
            ("ThrottledException", Throttled, true, false),
            ("InternalServerError", Unavailable, true, true),
            ("InternalFailure", Unavailable, true, true),
            ("ServiceUnavailable", Unavailable, true, true),
            ("AccessDenied", Denied, false, false),
            ("NotAuthorized", Denied, false, false),
            ("ExpiredTokenException", Denied, false, false),
            ("UnrecognizedClientException", Denied, false, false),
            ("InvalidClientTokenId", Denied, false, false),
            ("IncompleteSignatureException", Denied, false, false),
            ("MissingAuthenticationTokenException", Denied, false, false),
            ("ResourceNotFound", Misconfigured, false, false),
            ("ItemCollectionSizeLimitExceeded", Refused, false, false),
            ("ValidationError", Refused, false, false),
            ("Whatever", Refused, false, false),
        ] {
            let failure = failure(code, "");
            assert_eq!(
                (failure.kind(), failure.retry, failure.in_doubt),
                (kind, retry, in_doubt),
                "{code}"
            );
        }
        let size = "Item size has exceeded the maximum allowed size";
        assert_eq!(failure("ValidationException", size).kind(), TooLarge);
        let key = "The provided key element does not match the schema";
        assert_eq!(failure("ValidationException", key).kind(), Misconfigured);
    }

    #[test]
    fn a_request_that_the_server_got_too_slowly_is_sent_again_in_doubt() {
        for code in ["RequestTimeout", "RequestTimeoutException"] {
            let failure = failure(code, "");
            assert!(failure.retry && failure.in_doubt, "{code}");
            assert_eq!(failure.kind(), StoreErrorKind::Unavailable, "{code}");
        }
    }

    #[test]
    fn a_request_with_a_wrong_time_is_sent_again_without_doubt() {
        let expired = "Signature expired: 20261122T050000Z is now earlier than 20261122T050500Z";
        let early =
            "Signature not yet current: 20261122T060000Z is still later than 20261122T050500Z";
        for (code, message) in [
            ("RequestTimeTooSkewed", ""),
            ("RequestTimeTooSkewedException", "The difference is too large."),
            ("RequestExpired", ""),
            ("RequestInTheFuture", ""),
            ("InvalidSignatureException", expired),
            ("InvalidSignatureException", early),
            ("SignatureDoesNotMatch", expired),
            ("SignatureDoesNotMatch", early),
        ] {
            let failure = failure(code, message);
            assert!(failure.retry && !failure.in_doubt, "{code}: {message}");
            assert_eq!(failure.kind(), StoreErrorKind::Unavailable, "{code}: {message}");
            let text = failure.report(false).to_string();
            assert!(text.ends_with("correct this machine's clock"), "{text}");
        }
    }

    #[test]
    fn a_wrong_secret_key_is_not_sent_again() {
        let message =
            "The request signature we calculated does not match the signature you provided.";
        for code in ["InvalidSignatureException", "SignatureDoesNotMatch"] {
            let failure = failure(code, message);
            assert_eq!((failure.kind(), failure.retry), (StoreErrorKind::Denied, false), "{code}");
        }
    }

    #[test]
    fn the_text_names_the_remedy() {
        for (code, remedy) in [
            (
                "AccessDeniedException",
                "access to the store denied: PutItem on DynamoDB table orders: the role needs \
                 dynamodb:PutItem on the table",
            ),
            (
                "ResourceNotFoundException",
                "store misconfigured: PutItem on DynamoDB table orders: table orders does not exist \
                 in region eu-west-1, or is not active",
            ),
        ] {
            let error = failure(code, "as it says").report(false);
            assert_eq!(error.to_string(), remedy);
            assert_eq!(
                error.source().unwrap().to_string(),
                format!("{code}: as it says (request R1)")
            );
        }
        assert_eq!(
            permissions("PartiQLInsert PartiQLUpdate"),
            "dynamodb:PartiQLInsert, dynamodb:PartiQLUpdate (or use `DynamoDbStoreBuilder::without_partiql`)"
        );
    }

    #[test]
    fn what_a_message_quotes_is_cut() {
        let echo = "Value 'secret' at 'key' failed to satisfy constraint";
        let error = failure("ValidationException", echo).report(false);
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }

    #[test]
    fn an_error_in_doubt_does_not_say_it_twice() {
        let of_an_attempt_before = "an attempt had no answer and may have been applied";
        let texts = [("AccessDenied", true), ("AccessDenied", false), ("RequestTimeout", true)]
            .map(|(code, in_doubt)| failure(code, "").report(in_doubt).to_string());
        assert_eq!(texts.map(|text| text.contains(of_an_attempt_before)), [true, false, false]);
    }

    #[test]
    fn only_a_size_that_is_exceeded_is_too_large() {
        for message in ["The size is not a number", "A limit was exceeded"] {
            assert_eq!(failure("ValidationException", message).kind(), StoreErrorKind::Refused);
        }
    }

    fn failure_of(error: &SdkError<PutItemError>) -> Failure {
        let config = config();
        sdk_failure(Doing { config: &config, operation: "PutItem", permission: "PutItem" }, error)
    }

    #[test]
    fn a_request_without_a_readable_answer_is_in_doubt() {
        let response = || HttpResponse::new(StatusCode::try_from(200).unwrap(), SdkBody::empty());
        for (error, says) in [
            (SdkError::timeout_error("too late"), "had no answer within the client's time limit"),
            (
                SdkError::response_error("not JSON", response()),
                "was answered with something unreadable",
            ),
        ] {
            let failure = failure_of(&error);
            assert!(failure.retry && failure.in_doubt);
            let text = failure.report(false).to_string();
            assert!(text.ends_with(says), "{text}");
        }
    }

    #[test]
    fn an_error_of_the_server_keeps_what_the_server_said() {
        let said = ErrorMetadata::builder().code("Whatever").message("as it says").build();
        let response = HttpResponse::new(StatusCode::try_from(500).unwrap(), SdkBody::empty());
        let error = SdkError::service_error(PutItemError::generic(said), response);
        let failure = failure_of(&error);
        assert!(failure.retry && failure.in_doubt);
        let error = failure.report(false);
        assert!(error.to_string().ends_with("ended with HTTP status 500"), "{error}");
        assert_eq!(error.source().unwrap().to_string(), "Whatever: as it says");
    }

    #[test]
    fn the_causes_of_an_error_of_the_connection_are_named_in_turn() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let error = ConnectorError::io(refused.into());
        let text = chain(&error);
        assert_eq!(text, format!("{error}: connection refused"));
    }
}
