//! The HTTPS client of a store from the environment.
//!
//! It is the SDK's own, with what the SDK's default has: rustls with aws-lc, the proxy that the environment names, and
//! the system's root certificates. The difference is when certificates are read. The SDK's default reads and parses all
//! of them for each client that is made, to see that it can: also for the clients of credentials providers that are never
//! asked, and again for the first request. Here a connector is made when it is first needed, and that of DynamoDB while
//! the function starts.

use std::{
    borrow::Cow,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use aws_smithy_http_client::{
    Connector,
    proxy::ProxyConfig,
    tls::{Provider, TlsContext, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    connector_metadata::ConnectorMetadata,
    http::{HttpClient, HttpConnectorSettings, SharedHttpConnector},
    runtime_components::RuntimeComponents,
};

/// A client with a connector for each of the time limits that are asked for.
#[derive(Debug)]
pub(crate) struct Https {
    tls: TlsContext,
    connectors: Mutex<Vec<(Limits, SharedHttpConnector)>>,
}

/// The time limits of a connector: to connect, and to read.
type Limits = (Option<Duration>, Option<Duration>);

impl Https {
    /// A client that trusts what `tls` says. Certificates are read when the first connector is made.
    pub(crate) fn new(tls: TlsContext) -> Self {
        Self { tls, connectors: Mutex::default() }
    }

    /// Makes the connector for connections that are open within `connect_timeout`, so that no request has to.
    pub(crate) fn ready(self, connect_timeout: Duration) -> Self {
        let settings = HttpConnectorSettings::builder().connect_timeout(connect_timeout).build();
        self.connector(&settings);
        self
    }

    fn connector(&self, settings: &HttpConnectorSettings) -> SharedHttpConnector {
        let limits = (settings.connect_timeout(), settings.read_timeout());
        let mut connectors = self.connectors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, connector)) = connectors.iter().find(|(own, _)| *own == limits) {
            return connector.clone();
        }
        let connector = Connector::builder()
            .connector_settings(settings.clone())
            .proxy_config(ProxyConfig::from_env())
            .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
            .tls_context(self.tls.clone())
            .build();
        let connector = SharedHttpConnector::new(connector);
        connectors.push((limits, connector.clone()));
        connector
    }
}

impl HttpClient for Https {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        self.connector(settings)
    }

    /// As the SDK's default, for the header `User-Agent`.
    fn connector_metadata(&self) -> Option<ConnectorMetadata> {
        Some(ConnectorMetadata::new("hyper", Some(Cow::Borrowed("1.x"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots;

    #[test]
    fn there_is_one_connector_for_the_same_time_limits() {
        let connect = Duration::from_secs(1);
        let client = Https::new(roots::of_system()).ready(connect);
        let count = || client.connectors.lock().unwrap().len();
        assert_eq!(count(), 1, "made before the first request");
        let settings = || HttpConnectorSettings::builder().connect_timeout(connect);
        client.connector(&settings().build());
        assert_eq!(count(), 1, "that of the store's requests");
        client.connector(&settings().read_timeout(connect).build());
        assert_eq!(count(), 2, "a credentials provider has limits of its own");
    }

    #[test]
    fn no_connector_is_made_before_it_is_needed() {
        let client = Https::new(roots::of_system());
        assert!(client.connectors.lock().unwrap().is_empty());
    }
}
