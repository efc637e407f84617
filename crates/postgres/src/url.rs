//! The URL of a server: as `tokio-postgres` reads it, and what libpq knows besides.

use std::{path::PathBuf, time::Duration};

use percent_encoding::percent_decode_str;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use crate::config::PostgresConfigError;

/// After how long without a word the server is asked whether it is there, how often, and how many times.
const KEEPALIVES: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 3);

/// The parts of a URL.
pub(crate) struct Url {
    pub(crate) server: Config,
    /// Whether to encrypt.
    pub(crate) tls: bool,
    /// The file with the certificates to trust: `sslrootcert`.
    pub(crate) root_certificates: Option<PathBuf>,
}

impl Url {
    /// Reads a URL. The error does not quote it.
    pub(crate) fn parse(url: &str) -> Result<Self, PostgresConfigError> {
        let url = url.trim();
        if let Some((name, _)) = parameters(url).find(is_unsupported) {
            return Err(PostgresConfigError::UnsupportedParameter(name.to_owned()));
        }
        let (text, root_certificates) = without_libpq(url)?;
        if has_stray_sign(&text) {
            return Err(PostgresConfigError::UnfitUrl);
        }
        let server = server(&text)?;
        let tls = server.get_ssl_mode() != SslMode::Disable;
        Ok(Self { server, tls, root_certificates })
    }
}

fn server(text: &str) -> Result<Config, PostgresConfigError> {
    let mut server: Config = text.parse().map_err(|_| PostgresConfigError::UnfitUrl)?;
    if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
        return Err(PostgresConfigError::UnfitUrl);
    }
    if server.get_hosts().iter().any(is_dsql) {
        return Err(PostgresConfigError::AuroraDsql);
    }
    keep_alive(&mut server);
    if server.get_ssl_mode() != SslMode::Disable {
        server.ssl_mode(SslMode::Require);
    }
    Ok(server)
}

/// Whether the URL has an `@` beside the one before the host. Such a sign has to be percent-encoded: a part of the password
/// would be taken for the host or the database.
fn has_stray_sign(url: &str) -> bool {
    let (server, query) = url.split_once('?').unwrap_or((url, ""));
    ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme))
        && match server.matches('@').count() {
            0 => query.contains('@'),
            signs => signs > 1,
        }
}

/// Whether this is a cluster of Aurora DSQL, at its public endpoint (`CLUSTER.dsql.REGION.on.aws`) or at one of a VPC
/// (`CLUSTER.dsql-SUFFIX.REGION.on.aws`).
///
/// <https://docs.aws.amazon.com/aurora-dsql/latest/userguide/privatelink-managing-clusters.html>
fn is_dsql(host: &Host) -> bool {
    let Host::Tcp(name) = host else { return false };
    let name = name.to_ascii_lowercase();
    let mut labels = name.split('.').skip(1);
    name.ends_with(".on.aws")
        && labels.next().is_some_and(|label| label == "dsql" || label.starts_with("dsql-"))
}

/// Asks the server whether it is there, as often as the URL says, or else [so often](KEEPALIVES).
fn keep_alive(server: &mut Config) {
    let (idle, interval, retries) = KEEPALIVES;
    if server.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        server.keepalives_idle(idle);
    }
    let interval = server.get_keepalives_interval().unwrap_or(interval);
    let retries = server.get_keepalives_retries().unwrap_or(retries);
    server.keepalives_interval(interval).keepalives_retries(retries);
}

/// The parameters after the question mark, as they are written.
fn parameters(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|parameter| parameter.split_once('='))
}

/// Whether libpq knows this parameter and this store does not. Only such a name is repeated in the error: the others may be
/// parts of a password.
fn is_unsupported((name, value): &(&str, &str)) -> bool {
    match *name {
        "channel_binding" => *value == "require",
        "sslnegotiation" => *value == "direct",
        "sslmode" => *value == "allow",
        "target_session_attrs" => matches!(*value, "primary" | "standby" | "prefer-standby"),
        _ => [
            "sslcert",
            "sslkey",
            "sslpassword",
            "sslcrl",
            "sslcrldir",
            "passfile",
            "service",
            "gssencmode",
        ]
        .contains(name),
    }
}

/// The URL without the parameters that `tokio-postgres` does not know, and the value of `sslrootcert`. The modes
/// `verify-ca` and `verify-full` say nothing more here: certificates and names are always checked.
fn without_libpq(url: &str) -> Result<(String, Option<PathBuf>), PostgresConfigError> {
    let Some((server, query)) = url.split_once('?') else { return Ok((url.to_owned(), None)) };
    let (mut kept, mut certificates) = (Vec::new(), None);
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("sslrootcert", "system")) => {}
            Some(("sslrootcert", path)) => {
                let path = percent_decode_str(path).decode_utf8();
                let path = path.map_err(|_| PostgresConfigError::UnfitUrl)?;
                certificates = Some(PathBuf::from(&*path));
            }
            Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
            _ => kept.push(parameter),
        }
    }
    Ok((format!("{server}?{}", kept.join("&")), certificates))
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
        let url = read("postgres://db/orders?sslrootcert=C%3A%5Cmy%20certificates%2B%C3%A4.pem");
        assert_eq!(url.root_certificates, Some(PathBuf::from("C:\\my certificates+ä.pem")));
        let Err(error) = Url::parse("postgres://db/orders?sslrootcert=%FF") else { unreachable!() };
        assert!(matches!(error, PostgresConfigError::UnfitUrl), "{error}");
    }

    #[test]
    fn what_libpq_knows_and_the_store_does_not_is_refused_by_its_name() {
        let refused = |query: &str| Url::parse(&format!("postgres://db/orders?{query}")).map(drop);
        for query in [
            "sslmode=require&channel_binding=require", // as Neon writes it
            "sslnegotiation=direct",
            "sslmode=allow",
            "target_session_attrs=primary",
            "sslcert=client.pem&connect_timeout=3",
        ] {
            let error = refused(query).unwrap_err();
            let PostgresConfigError::UnsupportedParameter(name) = &error else { panic!("{error}") };
            assert!(query.contains(&format!("{name}=")), "{query}: {error}");
        }
        assert!(refused("channel_binding=prefer&target_session_attrs=read-write").is_ok());
        let error = Url::parse("postgres://orders:s3?cr3t@db/orders").map(drop).unwrap_err();
        assert!(!error.to_string().contains("cr3t"), "{error}");
    }

    #[test]
    fn aurora_dsql_is_refused_at_each_of_its_endpoints() {
        for host in [
            "abc123.dsql.eu-west-1.on.aws",
            "abc123.dsql-fnh4.eu-west-1.on.aws",
            "db,ABC123.dsql.eu-west-1.ON.AWS",
        ] {
            let refused = Url::parse(&format!("postgres://admin@{host}/postgres")).map(|_| ());
            assert!(matches!(refused, Err(PostgresConfigError::AuroraDsql)), "{host}");
        }
        for host in ["dsql.example.com", "orders.on.aws", "db.dsqlite.on.aws"] {
            read(&format!("postgres://admin@{host}/postgres"));
        }
    }

    #[test]
    fn keepalives_are_those_of_the_url_or_else_short() {
        let of = |url| {
            let server = &read(url).server;
            let seconds = |duration: Duration| duration.as_secs();
            let interval = server.get_keepalives_interval().map(seconds);
            (seconds(server.get_keepalives_idle()), interval, server.get_keepalives_retries())
        };
        assert_eq!(of("postgres://db/orders"), (10, Some(5), Some(3)));
        let all =
            "postgres://db/orders?keepalives_idle=60&keepalives_interval=20&keepalives_retries=9";
        assert_eq!(of(all), (60, Some(20), Some(9)));
        assert_eq!(of("postgres://db/orders?keepalives_idle=60"), (60, Some(5), Some(3)));
        assert!(!read("postgres://db/orders?keepalives=0").server.get_keepalives());
    }

    #[test]
    fn what_is_not_a_url_is_refused_without_being_repeated() {
        for url in [
            "",
            "db:5432",
            "postgres://u:s3cr3t@",
            "mysql://u:s3cr3t@db",
            "postgres://u:s3cr3t@h:port",
            "postgres://u:p@s3cr3t@h/d",
            "postgres://u@p:s3cr3t@h/d",
            "postgres://u:p@s3cr3t/cr3t@h/d",
            "postgres://u:s3cr3t?p@h/d",
            "postgres://h/d?application_name=s3cr3t@h",
        ] {
            let Err(error) = Url::parse(url) else { unreachable!("{url}") };
            assert!(matches!(error, PostgresConfigError::UnfitUrl), "{url}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        }
    }
}
