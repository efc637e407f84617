//! TLS, with the certificates of the machine or of the user.

#[cfg(feature = "tls")]
pub(crate) use with::Tls;
#[cfg(not(feature = "tls"))]
pub(crate) use without::Tls;

#[cfg(feature = "tls")]
mod with {
    use std::io;

    use lambda_idempotency_core::tls::{self, TlsError};
    use tokio::{
        io::{AsyncRead, AsyncWrite},
        net::TcpStream,
    };

    use crate::config_error::RedisConfigError;

    /// Makes TLS connections. The server's certificate and its name are always checked.
    #[derive(Clone)]
    pub(crate) struct Tls(tls::Tls);

    impl Tls {
        /// Trusts these certificates, in PEM, or else those of the machine.
        pub(crate) fn new(pem: Option<&[u8]>) -> Result<Self, RedisConfigError> {
            tls::Tls::new(pem).map(Self).map_err(|error| match error {
                TlsError::UnfitCertificates => RedisConfigError::UnfitCertificates,
                TlsError::NoCertificates => RedisConfigError::NoCertificates,
                _ => RedisConfigError::NoTls,
            })
        }

        pub(crate) async fn encrypt(
            &self,
            host: &str,
            tcp: TcpStream,
        ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>> {
            self.0.connect(host, tcp).await
        }
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
