//! The DynamoDB endpoint in the environment: the real service, or any other.

use aws_sdk_dynamodb::{Client, config::BehaviorVersion};

const VARIABLE: &str = "IDEMPOTENCY_TEST_ENDPOINT";

/// A client with the region and the credentials of the environment.
pub(crate) async fn client() -> Client {
    let Ok(endpoint) = std::env::var(VARIABLE) else {
        panic!("{VARIABLE} is not set: `aws` for the real service, or a URL; see CONTRIBUTING.md")
    };
    let mut config = aws_config::defaults(BehaviorVersion::v2026_01_12());
    if endpoint != "aws" {
        config = config.endpoint_url(endpoint);
    }
    let config = config.load().await;
    assert!(config.region().is_some(), "no AWS region: set AWS_REGION");
    Client::new(&config)
}
