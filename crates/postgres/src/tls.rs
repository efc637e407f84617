//! TLS by rustls, as `tokio-postgres` wants it, with the certificates of the system or of the user.

#[cfg(feature = "tls")]
pub(crate) use with::Tls;
#[cfg(not(feature = "tls"))]
pub(crate) use without::Tls;

#[cfg(feature = "tls")]
mod with {
    use std::{
        io,
        pin::Pin,
        sync::Arc,
        task::{Context, Poll},
    };

    use futures_util::future::BoxFuture;
    use rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    };
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
    use tokio_postgres::{
        Socket,
        tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
    };
    use tokio_rustls::{TlsConnector, client};

    use crate::config_error::PostgresConfigError;

    /// Makes TLS connections. The server's certificate and its name are always checked.
    #[derive(Clone)]
    pub(crate) struct Tls(TlsConnector);

    impl Tls {
        /// Trusts these certificates, in PEM, or those of the system.
        pub(crate) fn new(pem: Option<&[u8]>) -> Result<Self, PostgresConfigError> {
            let mut roots = RootCertStore::empty();
            match pem {
                Some(pem) => {
                    for certificate in CertificateDer::pem_slice_iter(pem) {
                        let read = certificate.ok().and_then(|read| roots.add(read).ok());
                        read.ok_or(PostgresConfigError::UnfitCertificates)?;
                    }
                    if roots.is_empty() {
                        return Err(PostgresConfigError::UnfitCertificates);
                    }
                }
                None => {
                    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                }
            }
            if roots.is_empty() {
                return Err(PostgresConfigError::NoCertificates);
            }
            // Names its cryptography: a process may have two, and rustls panics if it has to choose.
            let provider = Arc::new(aws_lc_rs::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .map_err(|_| PostgresConfigError::NoTls)?
                .with_root_certificates(roots)
                .with_no_client_auth();
            Ok(Self(TlsConnector::from(Arc::new(config))))
        }
    }

    impl MakeTlsConnect<Socket> for Tls {
        type Stream = Encrypted;
        type TlsConnect = Handshake;
        type Error = io::Error;

        fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
            Ok(Handshake { connector: self.0.clone(), host: host.to_owned() })
        }
    }

    /// A handshake with this host.
    pub(crate) struct Handshake {
        connector: TlsConnector,
        host: String,
    }

    impl TlsConnect<Socket> for Handshake {
        type Stream = Encrypted;
        type Error = io::Error;
        type Future = BoxFuture<'static, Result<Encrypted, io::Error>>;

        fn connect(self, socket: Socket) -> Self::Future {
            Box::pin(async move {
                let name = ServerName::try_from(self.host)
                    .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
                Ok(Encrypted(self.connector.connect(name, socket).await?))
            })
        }
    }

    /// An encrypted connection.
    pub(crate) struct Encrypted(client::TlsStream<Socket>);

    impl TlsStream for Encrypted {
        // It would bind the password's proof to the server's certificate, which is checked already.
        fn channel_binding(&self) -> ChannelBinding {
            ChannelBinding::none()
        }
    }

    impl AsyncRead for Encrypted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(cx, buffer)
        }
    }

    impl AsyncWrite for Encrypted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(cx, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(cx)
        }
    }
}

#[cfg(not(feature = "tls"))]
mod without {
    use crate::config_error::PostgresConfigError;

    /// There is none.
    #[derive(Clone)]
    pub(crate) struct Tls(pub(crate) std::convert::Infallible);

    impl Tls {
        pub(crate) fn new(_pem: Option<&[u8]>) -> Result<Self, PostgresConfigError> {
            Err(PostgresConfigError::NoTls)
        }
    }
}
