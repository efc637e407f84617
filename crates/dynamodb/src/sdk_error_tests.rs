use aws_sdk_dynamodb::{
    Client,
    config::{BehaviorVersion, Region},
};

use aws_sdk_dynamodb::{error::ErrorMetadata, operation::put_item::PutItemError};
use aws_smithy_runtime_api::{
    client::result::ConnectorError,
    http::{Response as HttpResponse, StatusCode},
};
use aws_smithy_types::body::SdkBody;

use super::*;
use crate::{codes::permissions, config::Config, store::DynamoDbStore};

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
        ("TransactionInProgressException", Contended, true, true),
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
    let early = "Signature not yet current: 20261122T060000Z is still later than 20261122T050500Z";
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
    let message = "The request signature we calculated does not match the signature you provided.";
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
        assert_eq!(error.source().unwrap().to_string(), format!("{code}: as it says (request R1)"));
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
fn after_an_attempt_in_doubt_the_error_says_that_it_may_have_applied() {
    let error = failure("AccessDenied", "").report(true);
    assert!(error.may_have_applied());
    assert!(error.to_string().contains("the role needs dynamodb:PutItem"), "{error}");
    assert!(!failure("AccessDenied", "").report(false).may_have_applied());
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
