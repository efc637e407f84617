//! The client of a store, and why it has no credentials: for now, or until somebody configures them.

use std::error::Error;
#[cfg(feature = "from-env")]
use std::time::Duration;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::{
    Client,
    config::{StalledStreamProtectionConfig, retry::RetryConfig},
};

/// The client with the settings that the store needs.
pub(crate) fn client_of(client: &Client) -> Client {
    let config = client
        .config()
        .to_builder()
        // A retry inside the SDK would find the item that its own first request wrote, and report a
        // failed condition.
        .retry_config(RetryConfig::disabled())
        // It watches how fast bodies come and go, at some expense for each request. Each request of the store has
        // a time limit anyway.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .build();
    Client::from_conf(config)
}

/// Within a region a connection takes milliseconds.
#[cfg(feature = "from-env")]
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A client by the environment; `None` without a region.
#[cfg(feature = "from-env")]
pub(crate) async fn client_from_env() -> Option<Client> {
    use aws_config::{BehaviorVersion, timeout::TimeoutConfig};

    // A fixed version, because `latest` would change these settings with an update of the SDK.
    let loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT_TIMEOUT).build());
    let config = loader.load().await;
    config.region().is_some().then(|| Client::new(&config))
}

/// Why there were no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoCredentials {
    /// Their source failed or did not answer, as when they are refreshed during an outage. The next
    /// request asks it again.
    NotNow,
    /// There is no source, or its configuration is wrong.
    NotConfigured,
}

/// Why there were no credentials, if that is why the request failed.
pub(crate) fn missing_credentials(error: Option<&(impl Error + 'static)>) -> Option<NoCredentials> {
    let mut next = error.map(|error| error as &dyn Error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<CredentialsError>() {
            return Some(match error {
                CredentialsError::ProviderError(_) | CredentialsError::ProviderTimedOut(_) => {
                    NoCredentials::NotNow
                }
                _ => NoCredentials::NotConfigured,
            });
        }
        // These two errors of the SDK have types that are not public: its time limit for the source,
        // and a client without any source.
        let text = error.to_string();
        if text.starts_with("identity resolver timed out") {
            return Some(NoCredentials::NotNow);
        }
        if text.contains("such as credentials") {
            return Some(NoCredentials::NotConfigured);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use aws_smithy_runtime_api::client::result::ConnectorError;

    use super::*;

    /// As the SDK reports an error that came before the request was sent.
    fn missing(error: impl Into<Box<dyn Error + Send + Sync>>) -> Option<NoCredentials> {
        missing_credentials(Some(&ConnectorError::other(error.into(), None)))
    }

    #[test]
    fn a_source_that_fails_may_answer_later() {
        let error = CredentialsError::provider_error("503 from STS");
        assert_eq!(missing(error), Some(NoCredentials::NotNow));
        let error = CredentialsError::provider_timed_out(Duration::from_secs(5));
        assert_eq!(missing(error), Some(NoCredentials::NotNow));
    }

    #[test]
    fn without_a_source_there_will_be_none_later() {
        let error = CredentialsError::not_loaded("no provider in chain");
        assert_eq!(missing(error), Some(NoCredentials::NotConfigured));
        let error = CredentialsError::invalid_configuration("profile `x` is not defined");
        assert_eq!(missing(error), Some(NoCredentials::NotConfigured));
        let error = CredentialsError::unhandled("no access key in the answer");
        assert_eq!(missing(error), Some(NoCredentials::NotConfigured));
    }

    #[test]
    fn the_errors_of_the_sdk_that_have_no_public_type() {
        let error = "identity resolver timed out after 5s";
        assert_eq!(missing(error), Some(NoCredentials::NotNow));
        let error = "no identity resolver: set an identity, such as credentials";
        assert_eq!(missing(error), Some(NoCredentials::NotConfigured));
    }

    #[test]
    fn other_errors_are_not_about_credentials() {
        assert_eq!(missing("connection reset"), None);
        assert_eq!(missing_credentials(None::<&ConnectorError>), None);
    }
}
