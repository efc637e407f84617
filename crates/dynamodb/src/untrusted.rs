//! Whether a connection failed because the server's certificate is not trusted.

use std::error::Error;

/// Whether this side refused the server's certificate. That happens in the handshake, before any of a request is sent.
///
/// An alert of the server is another error, and so is a connection that ends during the handshake.
#[cfg(feature = "default-https-client")]
pub(crate) fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            // Whatever is wrong with it. If a certificate of the chain has expired, rustls says so, even where the chain
            // would do without that one if another root were trusted.
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        next = match error.downcast_ref::<std::io::Error>() {
            // Its `source` is that of the error within, which is left out.
            Some(io) => io.get_ref().map(|error| error as _),
            None => error.source(),
        };
    }
    false
}

/// The client is not the SDK's, and has errors of its own.
#[cfg(not(feature = "default-https-client"))]
pub(crate) fn is_untrusted(_: &(dyn Error + 'static)) -> bool {
    false
}

#[cfg(all(test, feature = "default-https-client"))]
mod tests {
    use std::io;

    use aws_smithy_runtime_api::client::result::ConnectorError;
    use rustls::{AlertDescription, CertificateError, Error as Tls};

    use super::*;

    /// As hyper-rustls and the SDK wrap it.
    fn of_a_handshake(error: Tls) -> ConnectorError {
        let io = io::Error::new(io::ErrorKind::InvalidData, error);
        ConnectorError::io(io::Error::other(io).into())
    }

    #[test]
    fn only_a_certificate_that_this_side_refused() {
        for error in [CertificateError::UnknownIssuer, CertificateError::Expired] {
            assert!(is_untrusted(&of_a_handshake(error.into())));
        }
        // The server refuses ours, or the connection.
        for alert in [AlertDescription::UnknownCA, AlertDescription::HandshakeFailure] {
            assert!(!is_untrusted(&of_a_handshake(Tls::AlertReceived(alert))), "{alert:?}");
        }
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(!is_untrusted(&ConnectorError::io(refused.into())));
        let text = io::Error::other("invalid peer certificate: UnknownIssuer");
        assert!(!is_untrusted(&ConnectorError::io(text.into())), "a text is not enough");
    }
}
