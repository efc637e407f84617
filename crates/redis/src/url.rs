//! The URL of a server.

use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _};

use crate::config::{Address, Login, RedisConfigError};

/// The parts of a URL.
pub(crate) struct Url {
    pub(crate) address: Address,
    pub(crate) tls: bool,
    pub(crate) login: Login,
    pub(crate) database: i64,
}

impl Url {
    pub(crate) fn parse(url: &str) -> Result<Self, RedisConfigError> {
        let (scheme, rest) = url.trim().split_once("://").ok_or(RedisConfigError::UnfitUrl)?;
        let tls = match scheme {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return Err(RedisConfigError::UnfitUrl),
        };
        // Nothing after the database has an effect here. It may be a part of a password, with a `?` or `#` that is not
        // percent-encoded.
        if rest.contains(['?', '#']) {
            return Err(RedisConfigError::UnfitUrl);
        }
        // As without TLS, which is not the protocol's concern here.
        let info: ConnectionInfo = format!("redis://{rest}")
            .into_connection_info()
            .map_err(|_| RedisConfigError::UnfitUrl)?;
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err(RedisConfigError::UnfitUrl);
        };
        let settings = info.redis_settings();
        Ok(Self {
            address: Address { host: host.as_str().into(), port: *port },
            tls,
            login: Login {
                user: settings.username().map(str::to_owned),
                password: settings.password().map(str::to_owned),
            },
            database: settings.db(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_server_login_and_database() {
        let url = Url::parse("rediss://orders:s%40cret@cache.example:6380/2").unwrap();
        assert_eq!(url.address.to_string(), "cache.example:6380");
        assert_eq!((url.tls, url.database), (true, 2));
        assert_eq!(url.login.user.as_deref(), Some("orders"));
        assert_eq!(url.login.password.as_deref(), Some("s@cret"));
        let url = Url::parse(" valkey://cache\n").unwrap();
        assert_eq!((url.address.to_string(), url.tls), ("cache:6379".to_owned(), false));
        assert!(url.login.user.is_none() && url.login.password.is_none());
    }

    #[test]
    fn what_is_not_a_url_is_refused_without_being_repeated() {
        for url in [
            "",
            "cache:6379",
            "http://s3cr3t",
            "unix:///s3cr3t",
            "redis://u:s3cr3t@h:port",
            "redis://u:s3?cr3t@h",
            "redis://u:p#s3cr3t@h",
            "redis://u:p/s3cr3t@h",
            "redis://h/s3cr3t",
            "rediss://h#insecure",
            "redis://h?db=2",
        ] {
            let Err(error) = Url::parse(url) else { unreachable!("{url}") };
            assert!(matches!(error, RedisConfigError::UnfitUrl), "{url}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"));
        }
    }
}
