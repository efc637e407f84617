//! Which store the function has.

use std::{fmt, str::FromStr};

use serde::{Serialize, Serializer};

use crate::FaultKind;

/// Where the function keeps its idempotency records. Without a URL, the rig starts a server of its own, which it also
/// kills and starts again.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TestedStore {
    /// In the embedded DynamoDB.
    #[default]
    DynamoDb,
    /// In PostgreSQL. In the database of a URL the rig makes a schema of its own, and removes it.
    Postgres(Option<String>),
    /// In Redis or Valkey. In the server of a URL the rig uses names with a prefix of its own, and removes them.
    Redis(Option<String>),
}

impl TestedStore {
    /// Its name: `dynamodb`, `postgres` or `redis`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::DynamoDb => "dynamodb",
            Self::Postgres(_) => "postgres",
            Self::Redis(_) => "redis",
        }
    }

    /// Whether it commits effects in the transaction that completes their key.
    #[must_use]
    pub const fn commits(&self) -> bool {
        !matches!(self, Self::Redis(_))
    }

    /// Whether this can go wrong with it. What is wrong with processes and handlers can with every store.
    #[must_use]
    pub fn has(&self, kind: FaultKind) -> bool {
        match kind {
            FaultKind::Throttle | FaultKind::Error | FaultKind::Conflict => *self == Self::DynamoDb,
            FaultKind::Silence => *self != Self::DynamoDb,
            FaultKind::ServerKill => matches!(self, Self::Postgres(None) | Self::Redis(None)),
            _ => true,
        }
    }
}

/// Without the URL, which may have a password.
impl fmt::Debug for TestedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestedStore").field(&self.as_str()).finish_non_exhaustive()
    }
}

impl fmt::Display for TestedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for TestedStore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The text may be a URL with a password, so errors do not repeat it.
impl FromStr for TestedStore {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let url = || Some(text.to_owned());
        match text.split_once("://") {
            None => match text {
                "dynamodb" => Ok(Self::DynamoDb),
                "postgres" => Ok(Self::Postgres(None)),
                "redis" => Ok(Self::Redis(None)),
                _ => Err("use dynamodb, postgres, redis, postgres://.. or redis://..".to_owned()),
            },
            Some(("postgres" | "postgresql", rest)) if rest.contains("sslmode=disable") => {
                Ok(Self::Postgres(url()))
            }
            Some(("redis" | "valkey", _)) => Ok(Self::Redis(url())),
            Some(("postgres" | "postgresql" | "rediss" | "valkeys", _)) => Err(
                "a proxy that injects faults is between the function and the server, so the server's certificate \
                 would not fit: use a server without TLS, redis://.. or postgres://..?sslmode=disable"
                    .to_owned(),
            ),
            Some(_) => Err("the URL has to begin with postgres:// or redis://".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_its_kind_or_by_a_url_that_is_never_shown() {
        assert_eq!("postgres".parse(), Ok(TestedStore::Postgres(None)));
        let url = "redis://:s3cr3t@cache";
        let store: TestedStore = url.parse().unwrap();
        assert_eq!(store, TestedStore::Redis(Some(url.to_owned())));
        assert!(!format!("{store:?} {store}").contains("s3cr3t"));
        for refused in ["rediss://:s3cr3t@cache", "postgres://u:s3cr3t@db/d", "mysql://s3cr3t", "x"]
        {
            let error = refused.parse::<TestedStore>().unwrap_err();
            assert!(!error.contains("s3cr3t") && error.contains("redis"), "{error}");
        }
    }
}
