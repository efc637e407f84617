//! The HTTPS client of a store from the environment.
//!
//! It is the SDK's own, with what the SDK's default has: rustls with aws-lc, and the proxy that the environment names. There
//! are two differences.
//!
//! * The SDK's default reads and parses root certificates for each client that is made, to see that it can: also for the
//!   clients of credentials providers that are never asked, and again for the first request. Here a connector is made when
//!   it is first needed, and that of DynamoDB while the function starts.
//! * The system's root certificates are read only if Amazon's do not know a server. Its handshake then fails, before any of
//!   the request is sent, and the request is sent over another connection. Nothing else is sent again here: the store counts
//!   its attempts, and has to know of each that may have been applied.

use std::{
    borrow::Cow,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aws_smithy_http_client::{
    Connector,
    proxy::ProxyConfig,
    tls::{Provider, TlsContext, rustls_provider::CryptoMode},
};
use aws_smithy_runtime_api::client::{
    connection::CaptureSmithyConnection,
    connector_metadata::ConnectorMetadata,
    http::{
        HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
    },
    orchestrator::HttpRequest,
    runtime_components::RuntimeComponents,
};

use crate::{roots::Roots, untrusted::is_untrusted};

/// A client with a connector for each of the time limits that are asked for.
#[derive(Debug)]
pub(crate) struct Https {
    roots: Roots,
    connectors: Mutex<Vec<(Limits, SharedHttpConnector)>>,
}

/// The time limits of a connector: to connect, and to read.
type Limits = (Option<Duration>, Option<Duration>);

impl Https {
    /// A client that trusts these certificates. The first are read when a connector is made.
    pub(crate) fn new(roots: Roots) -> Self {
        Self { roots, connectors: Mutex::default() }
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
        let connector = SharedHttpConnector::new(Trusting::new(&self.roots, settings));
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

/// A connector that trusts the first certificates, or the others once the first did not know a server.
#[derive(Debug)]
struct Trusting {
    first: SharedHttpConnector,
    others: Option<Arc<Others>>,
}

/// The connector that trusts the others. It is made when it is first needed.
#[derive(Debug)]
struct Others {
    tls: TlsContext,
    settings: HttpConnectorSettings,
    connector: OnceLock<SharedHttpConnector>,
    /// Whether it has reached a server. Until then, the first certificates are tried again for each request: perhaps
    /// something else was wrong, for example the clock for a moment, and there may be no others at all.
    are_right: AtomicBool,
    /// Whether the first have reached a server, and have refused none since. Then the others are not expected to be
    /// needed, and no copies of requests are made for them.
    first_are_right: AtomicBool,
}

impl Trusting {
    fn new(roots: &Roots, settings: &HttpConnectorSettings) -> Self {
        let first = connector_with(roots.first.clone(), settings.clone());
        let others = roots.others.clone().map(|tls| Others {
            tls,
            settings: settings.clone(),
            connector: OnceLock::new(),
            are_right: AtomicBool::new(false),
            first_are_right: AtomicBool::new(false),
        });
        Self { first, others: others.map(Arc::new) }
    }
}

impl Others {
    /// The connector. The first call reads the certificates.
    fn connector(&self) -> &SharedHttpConnector {
        self.connector.get_or_init(|| connector_with(self.tls.clone(), self.settings.clone()))
    }
}

impl HttpConnector for Trusting {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let Some(others) = self.others.clone() else { return self.first.call(request) };
        if others.are_right.load(Ordering::Relaxed) {
            return others.connector().call(request);
        }
        let first_are_right = others.first_are_right.load(Ordering::Relaxed);
        let copy = if first_are_right { None } else { copied(&request) };
        let sent = self.first.call(request);
        HttpConnectorFuture::new(async move {
            let answer = sent.await;
            match &answer {
                Err(error) if is_untrusted(error) => {}
                Err(_) => return answer,
                Ok(_) => {
                    others.first_are_right.store(true, Ordering::Relaxed);
                    return answer;
                }
            }
            // A request without a copy fails, and its caller sends it again, with one.
            others.first_are_right.store(false, Ordering::Relaxed);
            // Now, also if the caller does not wait for the answer: its next request needs it.
            let connector = others.connector();
            let Some(request) = copy else { return answer };
            let answer = connector.call(request).await;
            if answer.is_ok() {
                others.are_right.store(true, Ordering::Relaxed);
            }
            answer
        })
    }
}

/// The same request once more, with little more than a copy of its headers. `None` if its body is a stream.
fn copied(request: &HttpRequest) -> Option<HttpRequest> {
    let mut copy = request.try_clone()?;
    // By this the SDK finds the connection of the request, to close it after some errors.
    if let Some(connection) = request.extension::<CaptureSmithyConnection>() {
        copy.add_extension(connection.clone());
    }
    Some(copy)
}

fn connector_with(tls: TlsContext, settings: HttpConnectorSettings) -> SharedHttpConnector {
    let connector = Connector::builder()
        .connector_settings(settings)
        .proxy_config(ProxyConfig::from_env())
        .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
        .tls_context(tls)
        .build();
    SharedHttpConnector::new(connector)
}

#[cfg(test)]
#[path = "https_tests.rs"]
mod tests;
