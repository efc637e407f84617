//! Stores that are not in DynamoDB: which server is meant, and how it is reached.

use std::{future::ready, io, sync::Arc, time::Duration};

use clap::Args;
use lambda_idempotency_core::{
    browse::Browse,
    clock::{Clock as _, SystemClock, Timestamp},
    settings::variable,
    store::{Store, StoreError, StoreErrorKind},
};
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_redis::RedisStore;

use crate::failure::Failure;

/// How long one call may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long one request may take. At a terminal a slow connection is not a lost one.
pub(crate) const ATTEMPT: Duration = Duration::from_secs(10);

/// When a call that begins now has to have ended.
pub(crate) fn deadline() -> Timestamp {
    SystemClock.now().plus(PATIENCE)
}

#[derive(Args)]
pub(crate) struct ServerOptions {
    /// The store: dynamodb:TABLE, postgres://.. or redis://.. [default: the environment variable IDEMPOTENCY_STORE, or
    /// the DynamoDB table]
    #[arg(long, global = true, value_name = "URL")]
    store: Option<String>,

    /// The environment variable that holds the password of the server, in place of one in the URL
    #[arg(long, global = true, value_name = "VARIABLE")]
    password_from_env: Option<String>,

    /// The beginning of the names of records in Redis [default: idempotency:]
    #[arg(long, global = true, value_name = "TEXT")]
    redis_prefix: Option<String>,

    /// Go on with a Redis that may evict records, or that does not say whether it may
    ///
    /// The list may then show less than was done.
    #[arg(long, global = true)]
    allow_eviction: bool,
}

/// A store whose records can be listed.
pub(crate) trait BrowsableStore: Store + Browse {}

impl<S: Store + Browse> BrowsableStore for S {}

/// A store, and the time by its server's clock.
pub(crate) type Connected = (Arc<dyn BrowsableStore>, Timestamp);

/// A server that keeps idempotency records.
pub(crate) struct Server {
    kind: Kind,
    url: String,
    password: Option<String>,
}

enum Kind {
    Postgres { table: String },
    Redis { prefix: Option<String>, allow_eviction: bool },
}

impl ServerOptions {
    fn named(&self) -> Result<Option<String>, Failure> {
        match &self.store {
            Some(named) => Ok(Some(named.trim().to_owned()).filter(|named| !named.is_empty())),
            None => Ok(variable("IDEMPOTENCY_STORE")?),
        }
    }

    /// The table that is named as `dynamodb:TABLE`.
    pub(crate) fn dynamodb_table(&self) -> Result<Option<String>, Failure> {
        Ok(self.named()?.and_then(|named| named.strip_prefix("dynamodb:").map(str::to_owned)))
    }

    /// No server: the store is in DynamoDB.
    fn dynamodb(&self) -> Result<Option<Server>, Failure> {
        let of_servers = [
            ("--password-from-env", self.password_from_env.is_some()),
            ("--redis-prefix", self.redis_prefix.is_some()),
            ("--allow-eviction", self.allow_eviction),
        ];
        refuse("DynamoDB", &of_servers).map(|()| None)
    }

    /// The server that is named; `None` if the store is in DynamoDB.
    pub(crate) fn server(&self, table: Option<&str>) -> Result<Option<Server>, Failure> {
        let Some(url) = self.named()? else { return self.dynamodb() };
        let kind = match url.split_once(':').map(|(scheme, _)| scheme) {
            Some("dynamodb") => {
                let other = self
                    .dynamodb_table()?
                    .filter(|named| table.is_some_and(|table| table != named));
                if other.is_some() {
                    return Err(Failure::from("--table and the store name two tables")
                        .remedy("Name one of them, by --store dynamodb:TABLE or by --table."));
                }
                return self.dynamodb();
            }
            Some("postgres" | "postgresql") => {
                let of_redis = [
                    ("--redis-prefix", self.redis_prefix.is_some()),
                    ("--allow-eviction", self.allow_eviction),
                ];
                refuse("PostgreSQL", &of_redis)?;
                Kind::Postgres { table: table.unwrap_or("idempotency").to_owned() }
            }
            Some("redis" | "rediss" | "valkey" | "valkeys") if table.is_none() => {
                let (prefix, allow_eviction) = (self.redis_prefix.clone(), self.allow_eviction);
                Kind::Redis { prefix, allow_eviction }
            }
            Some("redis" | "rediss" | "valkey" | "valkeys") => {
                return Err(Failure::from("Redis has no tables").remedy(
                    "Leave --table out, or name the DynamoDB table by --store dynamodb:TABLE.",
                ));
            }
            // It may hold a password, so it is not repeated.
            _ => {
                return Err(Failure::from("the store cannot be read").remedy(
                    "Write --store or IDEMPOTENCY_STORE as dynamodb:TABLE, postgres://USER@HOST/DATABASE or \
                     rediss://USER@HOST.",
                ));
            }
        };
        let password = self.password_from_env.as_deref().map(password).transpose()?;
        Ok(Some(Server { kind, url, password }))
    }
}

/// Refuses the first of these options that is set: it would be ignored in this store.
pub(crate) fn refuse(store: &str, options: &[(&str, bool)]) -> Result<(), Failure> {
    let Some((option, _)) = options.iter().find(|(_, is_set)| *is_set) else { return Ok(()) };
    Err(Failure::from(format!("{option} has no effect on {store}"))
        .remedy("Leave it out, or name the store that you mean by --store."))
}

/// The error of a Redis that may evict, or that allows no `INFO`, with what to do at a terminal.
fn insists(error: StoreError) -> Failure {
    match error.kind() {
        StoreErrorKind::Misconfigured => Failure::from(at_a_terminal(&error)),
        StoreErrorKind::Denied => Failure::from(error)
            .remedy("If the user of the URL has no permission for INFO, add --allow-eviction."),
        _ => error.into(),
    }
}

/// The store names the setting of a function.
fn at_a_terminal(error: &StoreError) -> String {
    error.to_string().replace("`RedisStoreBuilder::allow_eviction`", "--allow-eviction")
}

fn password(variable: &str) -> Result<String, Failure> {
    std::env::var(variable).map_err(|_| {
        Failure::from(format!("the environment variable {variable} is not set"))
            .remedy("--password-from-env names the variable that holds the password of the server.")
    })
}

impl Server {
    pub(crate) const fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Postgres { .. } => "PostgreSQL",
            Kind::Redis { .. } => "Redis",
        }
    }

    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match &self.kind {
            Kind::Postgres { table } => format!("PostgreSQL table {table}"),
            Kind::Redis { .. } => "Redis".to_owned(),
        }
    }
}

impl Server {
    /// The store, and the time by the server's clock. Before something is changed, the server is checked; to read, it need
    /// not be one that a function could use.
    pub(crate) async fn connect(&self, changes: bool) -> Result<Connected, Failure> {
        match &self.kind {
            Kind::Postgres { table } => {
                let store = self.postgres(table, changes)?;
                if changes {
                    store.check().await?;
                }
                let time = store.server_time(deadline()).await?;
                Ok((Arc::new(store), time))
            }
            Kind::Redis { prefix, allow_eviction } => {
                let store = self.redis(prefix.as_deref(), *allow_eviction)?;
                // Each connection checks its server.
                let time = store.server_time(deadline()).await.map_err(insists)?;
                Ok((Arc::new(store), time))
            }
        }
    }

    /// The problems of the server or the table. An error if the server does not answer.
    pub(crate) async fn problems(&self) -> Result<Vec<String>, Failure> {
        let checked = match &self.kind {
            Kind::Postgres { table } => {
                self.postgres(table, true)?.check().await.map_err(Failure::from)
            }
            Kind::Redis { prefix, allow_eviction } => {
                let store = self.redis(prefix.as_deref(), *allow_eviction)?;
                store.check().await.map_err(Failure::from)
            }
        };
        let Err(failure) = checked else { return Ok(Vec::new()) };
        match failure.cause::<StoreError>() {
            Some(error) if error.kind() == StoreErrorKind::Misconfigured => {
                Ok(vec![at_a_terminal(error)])
            }
            _ => Err(failure),
        }
    }

    fn postgres(&self, table: &str, changes: bool) -> Result<PostgresStore, Failure> {
        let mut builder = PostgresStore::builder(&self.url)
            .table(table)
            .attempt_timeout(ATTEMPT)
            .connect_timeout(ATTEMPT);
        if let Some(password) = self.password.clone() {
            builder = builder.password(move || ready(Ok::<_, io::Error>(password.clone())));
        }
        if !changes {
            builder = builder.read_only();
        }
        Ok(builder.build()?)
    }

    fn redis(&self, prefix: Option<&str>, allow_eviction: bool) -> Result<RedisStore, Failure> {
        let mut builder =
            RedisStore::builder(&self.url).attempt_timeout(ATTEMPT).connect_timeout(ATTEMPT);
        if let Some(prefix) = prefix {
            builder = builder.prefix(prefix);
        }
        if allow_eviction {
            builder = builder.allow_eviction();
        }
        if let Some(password) = self.password.clone() {
            builder = builder.password(move || ready(Ok::<_, io::Error>(password.clone())));
        }
        Ok(builder.build()?)
    }
}
