//! TLS as `tokio-postgres` wants it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;
use lambda_idempotency_core::tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};

/// Makes TLS connections. The server's certificate and its name are always checked.
#[derive(Clone)]
pub(crate) struct Tls(pub(crate) tls::Tls);

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
        Ok(Handshake { tls: self.0.clone(), host: host.to_owned() })
    }
}

/// A handshake with this host.
pub(crate) struct Handshake {
    tls: tls::Tls,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, Result<Encrypted, io::Error>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(
            async move { Ok(Encrypted(Box::new(self.tls.connect(&self.host, socket).await?))) },
        )
    }
}

/// What an encrypted connection can do.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// An encrypted connection.
pub(crate) struct Encrypted(Box<dyn Stream>);

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
