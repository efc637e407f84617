//! TLS, with the certificates of the system or of the user.

#[cfg(feature = "tls")]
pub(crate) use with::Tls;
#[cfg(not(feature = "tls"))]
pub(crate) use without::Tls;

#[cfg(feature = "tls")]
mod with {
    use std::{io, sync::Arc};

    use rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    };
    use tokio::net::TcpStream;
    use tokio_rustls::{TlsConnector, client::TlsStream};

    use crate::config_error::RedisConfigError;

    /// How connections are encrypted. Made once, because reading the certificates of a system takes milliseconds.
    #[derive(Clone)]
    pub(crate) struct Tls(TlsConnector);

    impl Tls {
        /// Trusts these certificates, in PEM, or those of the system.
        pub(crate) fn new(pem: Option<&[u8]>) -> Result<Self, RedisConfigError> {
            let roots = match pem {
                Some(pem) => given(pem)?,
                None => of_the_machine()?,
            };
            // Names its cryptography: a process may have two, and rustls panics if it has to choose.
            let provider = Arc::new(aws_lc_rs::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|_| RedisConfigError::NoTls)?
                .with_root_certificates(roots)
                .with_no_client_auth();
            Ok(Self(TlsConnector::from(Arc::new(config))))
        }

        pub(crate) async fn encrypt(
            &self,
            host: &str,
            tcp: TcpStream,
        ) -> io::Result<TlsStream<TcpStream>> {
            let name = ServerName::try_from(host.to_owned())
                .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            self.0.connect(name, tcp).await
        }
    }

    fn given(pem: &[u8]) -> Result<RootCertStore, RedisConfigError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|_| RedisConfigError::UnfitCertificates)?;
            roots.add(certificate).map_err(|_| RedisConfigError::UnfitCertificates)?;
        }
        if roots.is_empty() { Err(RedisConfigError::UnfitCertificates) } else { Ok(roots) }
    }

    fn of_the_machine() -> Result<RootCertStore, RedisConfigError> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() { Err(RedisConfigError::NoCertificates) } else { Ok(roots) }
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use std::{convert::Infallible, io};

    use tokio::net::TcpStream;

    use crate::config_error::RedisConfigError;

    /// There is none.
    #[derive(Clone)]
    pub(crate) struct Tls(Infallible);

    impl Tls {
        pub(crate) fn new(_pem: Option<&[u8]>) -> Result<Self, RedisConfigError> {
            Err(RedisConfigError::NoTls)
        }

        pub(crate) async fn encrypt(&self, _host: &str, _tcp: TcpStream) -> io::Result<TcpStream> {
            match self.0 {}
        }
    }
}
