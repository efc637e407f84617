//! The URL of a server: as `tokio-postgres` reads it, and what libpq knows besides.

use std::path::PathBuf;

use tokio_postgres::config::SslMode;

use crate::config_error::PostgresConfigError;

/// What a URL says.
pub(crate) struct Url {
    pub(crate) server: tokio_postgres::Config,
    /// Whether to encrypt.
    pub(crate) tls: bool,
    /// The file with the certificates to trust: `sslrootcert`.
    pub(crate) root_certificates: Option<PathBuf>,
}

impl Url {
    /// Reads a URL. The error does not quote it.
    pub(crate) fn parse(url: &str) -> Result<Self, PostgresConfigError> {
        let (text, root_certificates) = without_libpq(url.trim());
        let server = text.parse::<tokio_postgres::Config>();
        let mut server = server.map_err(|_| PostgresConfigError::UnfitUrl)?;
        if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
            return Err(PostgresConfigError::UnfitUrl);
        }
        let tls = server.get_ssl_mode() != SslMode::Disable;
        if tls {
            server.ssl_mode(SslMode::Require);
        }
        Ok(Self { server, tls, root_certificates })
    }
}

/// The URL without the parameters that `tokio-postgres` does not know, and the value of `sslrootcert`. The modes
/// `verify-ca` and `verify-full` say nothing more here: certificates and names are always checked.
fn without_libpq(url: &str) -> (String, Option<PathBuf>) {
    let Some((server, query)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (mut kept, mut certificates) = (Vec::new(), None);
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("sslrootcert", "system")) => {}
            Some(("sslrootcert", path)) => {
                certificates = Some(PathBuf::from(path.replace("%2F", "/").replace("%2f", "/")));
            }
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            _ => kept.push(parameter),
        }
    }
    (format!("{server}?{}", kept.join("&")), certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Url {
        Url::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    #[test]
    fn connections_are_encrypted_unless_the_url_says_otherwise() {
        for (url, tls) in [
            ("postgres://orders@db/orders", true),
            ("postgres://orders@db/orders?sslmode=prefer", true),
            ("postgres://orders@db/orders?sslmode=verify-full", true),
            ("postgres://orders@db/orders?connect_timeout=3&sslmode=disable", false),
        ] {
            let url = read(url);
            assert_eq!((url.tls, url.server.get_user()), (tls, Some("orders")));
        }
    }

    #[test]
    fn certificates_are_named_as_libpq_names_them() {
        let url = read(
            "postgresql://db/orders?sslrootcert=%2Fvar%2Ftask%2Frds.pem&target_session_attrs=read-write",
        );
        assert_eq!(url.root_certificates, Some(PathBuf::from("/var/task/rds.pem")));
        assert!(read("postgres://db/orders?sslrootcert=system").root_certificates.is_none());
    }

    #[test]
    fn what_is_not_a_url_is_refused_without_being_repeated() {
        for url in [
            "",
            "db:5432",
            "postgres://u:s3cr3t@",
            "mysql://u:s3cr3t@db",
            "postgres://u:s3cr3t@h:port",
        ] {
            let Err(error) = Url::parse(url) else { unreachable!("{url}") };
            assert!(matches!(error, PostgresConfigError::UnfitUrl), "{url}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        }
    }
}
