//! What the SDK's own errors say.

use std::error::Error as _;

use aws_sdk_dynamodb::{Error, error::ProvideErrorMetadata as _};

use crate::failure::Failure;

/// A request that failed. The SDK calls most errors only "unhandled"; their code and their causes say what happened.
pub(crate) fn failed(error: Error) -> Failure {
    if let Some(code) = error.code() {
        let message = error.message().map(|message| format!(": {message}")).unwrap_or_default();
        return Failure::from(format!("DynamoDB refused the request: {code}{message}"));
    }
    let mut text = "DynamoDB did not answer".to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    Failure::from(text)
}
