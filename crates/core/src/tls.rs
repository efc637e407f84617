//! TLS for stores with a server of their own: rustls, with the cryptography of the AWS SDK. Without the feature `tls` there
//! is none, and [`Tls::new`] says so.

use std::{fmt, io};

use tokio::io::{AsyncRead, AsyncWrite};

#[cfg(feature = "tls")]
use self::with::{Connector, connect, connector};
#[cfg(not(feature = "tls"))]
use self::without::{Connector, connect, connector};

/// How connections are encrypted. The server's certificate and its name are always checked.
///
/// Make it once for a store, because reading the certificates of a system takes milliseconds.
#[derive(Clone)]
pub struct Tls(Connector);

/// Why connections cannot be encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The certificates that were given are not PEM, are none, or cannot be trusted.
    #[error("the root certificates cannot be read")]
    UnfitCertificates,
    /// The machine has no root certificates.
    #[error("this machine has no root certificates")]
    NoCertificates,
    /// The feature `tls` is off, or the cryptography knows no version of TLS.
    #[error("there is no version of TLS")]
    NoVersion,
}

impl Tls {
    /// Trusts these certificates, in PEM, or else those of the machine.
    ///
    /// ```
    /// use lambda_idempotency_core::tls::{Tls, TlsError};
    ///
    /// let refused: Option<TlsError> = Tls::new(Some(b"-----BEGIN")).err();
    /// assert!(refused.is_some());
    /// ```
    ///
    /// # Errors
    /// [`TlsError`]
    pub fn new(pem: Option<&[u8]>) -> Result<Self, TlsError> {
        connector(pem).map(Self)
    }

    /// Encrypts a connection to this host.
    ///
    /// # Errors
    /// The handshake failed: the connection ended, or the certificate is not trusted or not for this host.
    pub async fn connect<S>(
        &self,
        host: &str,
        stream: S,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<S>>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        connect(&self.0, host, stream).await
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

#[cfg(feature = "tls")]
mod with {
    use std::{io, sync::Arc};

    use rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    };
    use tokio::io::{AsyncRead, AsyncWrite};
    use tokio_rustls::client::TlsStream;

    use super::TlsError;

    pub(super) use tokio_rustls::TlsConnector as Connector;

    pub(super) fn connector(pem: Option<&[u8]>) -> Result<Connector, TlsError> {
        let roots = match pem {
            Some(pem) => given(pem)?,
            None => of_the_machine()?,
        };
        // Names its cryptography: a process may have two, and rustls panics if it has to choose.
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| TlsError::NoVersion)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Connector::from(Arc::new(config)))
    }

    pub(super) async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        connector: &Connector,
        host: &str,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        connector.connect(name, stream).await
    }

    fn given(pem: &[u8]) -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| TlsError::UnfitCertificates)?;
            roots.add(certificate).map_err(|_| TlsError::UnfitCertificates)?;
        }
        if roots.is_empty() { Err(TlsError::UnfitCertificates) } else { Ok(roots) }
    }

    fn of_the_machine() -> Result<RootCertStore, TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() { Err(TlsError::NoCertificates) } else { Ok(roots) }
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use std::{convert::Infallible, io};

    use super::TlsError;

    pub(super) type Connector = Infallible;

    pub(super) const fn connector(_pem: Option<&[u8]>) -> Result<Connector, TlsError> {
        Err(TlsError::NoVersion)
    }

    pub(super) async fn connect<S>(never: &Connector, _host: &str, _stream: S) -> io::Result<S> {
        match *never {}
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    /// One that cannot be read makes all unfit: who leaves it out would trust others than the user meant.
    #[test]
    fn certificates_that_are_none_are_refused() {
        let unreadable = "-----BEGIN CERTIFICATE-----\ns3cr3t\n-----END CERTIFICATE-----\n";
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for pem in ["", "-----BEGIN", unreadable, no_certificate] {
            let error = Tls::new(Some(pem.as_bytes())).map(|_| ()).unwrap_err();
            assert_eq!(error, TlsError::UnfitCertificates, "{pem}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        }
    }
}
