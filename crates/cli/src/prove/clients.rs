//! The clients of the services, as the AWS SDK configures them: profiles, roles, Regions, `AWS_ENDPOINT_URL`.

use std::time::Duration;

use aws_config::{BehaviorVersion, retry::RetryConfig, timeout::TimeoutConfig};

use crate::{failure::Failure, records::Found};

#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) logs: aws_sdk_cloudwatchlogs::Client,
    pub(crate) region: String,
}

impl Clients {
    pub(crate) async fn from_env() -> Result<Self, Failure> {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(5))
            .operation_attempt_timeout(Duration::from_secs(30))
            .build();
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            // A message that was sent twice is a duplicate more, and no error: the audit knows only its own ids.
            .retry_config(RetryConfig::standard().with_max_attempts(8))
            .timeout_config(timeouts)
            .load()
            .await;
        let Some(region) = config.region().map(ToString::to_string) else {
            let failure = Failure::from("no AWS Region is configured");
            return Err(failure.remedy("Name it by AWS_REGION."));
        };
        if let Some(provider) = config.credentials_provider() {
            Found::by(provider).await?;
        }
        Ok(Self {
            dynamodb: aws_sdk_dynamodb::Client::new(&config),
            sqs: aws_sdk_sqs::Client::new(&config),
            logs: aws_sdk_cloudwatchlogs::Client::new(&config),
            region,
        })
    }
}
