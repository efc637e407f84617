//! A request of the SDK that failed, in a sentence. The SDK's own text for most of them is "unhandled error".

use std::error::Error;

use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};

use crate::failure::Failure;

/// Why `operation` on a table failed: DynamoDB refused it, or did not answer.
pub(crate) fn failure<E>(operation: &str, table: &str, error: SdkError<E>) -> Failure
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let what = match &error {
        SdkError::ServiceError(_) => {
            let code = error.code().unwrap_or("an error without a code");
            match error.message() {
                Some(message) => format!("was refused: {code}: {message}"),
                None => format!("was refused: {code}"),
            }
        }
        SdkError::TimeoutError(_) => "was not answered in time".to_owned(),
        SdkError::DispatchFailure(_) => format!("did not reach DynamoDB: {}", deepest(&error)),
        SdkError::ResponseError(_) => {
            format!("was answered with something unreadable: {}", deepest(&error))
        }
        _ => format!("could not be sent: {}", deepest(&error)),
    };
    Failure::from(format!("{operation} on DynamoDB table {table} {what}"))
}

/// The cause that no other error explains.
fn deepest(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
