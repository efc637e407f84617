//! The server of a store.

use std::{fs, process::Child};

use lambda_idempotency::{
    PostgresStore,
    clock::{Clock as _, SystemClock},
};
use lambda_idempotency_local::{DynamoDb, Table};
use lambda_idempotency_testkit::tcp::TcpProxy;

use crate::{Result, postgres, process::Counts, redis_server};

/// A server that runs.
pub(crate) enum Server {
    DynamoDb(DynamoDb),
    Postgres(postgres::Postgres),
    Redis(redis_server::Server),
}

/// The way of one function to the server.
pub(crate) enum Path {
    DynamoDb(DynamoDb),
    Proxied(TcpProxy, String),
}

impl Server {
    pub(crate) async fn start(name: &str) -> Result<Self> {
        match name {
            "dynamodb" => {
                let database = DynamoDb::start().await?;
                database.create_table(&Table::new("idempotency", "id").ttl("expiration"))?;
                Ok(Self::DynamoDb(database))
            }
            "postgres" => {
                let server = postgres::Postgres::start_with(&[]);
                let store = PostgresStore::new(&server.url())?;
                store.migrate(SystemClock.now().plus(std::time::Duration::from_secs(60))).await?;
                Ok(Self::Postgres(server))
            }
            "redis" => Ok(Self::Redis(redis_server::Server::start(&[]).await)),
            _ => Err(format!("`{name}` is not a store: use dynamodb, postgres or redis").into()),
        }
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::DynamoDb(_) => "dynamodb",
            Self::Postgres(_) => "postgres",
            Self::Redis(_) => "redis",
        }
    }

    pub(crate) async fn path(&self) -> Result<Path> {
        Ok(match self {
            Self::DynamoDb(database) => Path::DynamoDb(database.clone()),
            Self::Postgres(server) => {
                let proxy = TcpProxy::start(server.address()).await?;
                let url = postgres::url(proxy.address());
                Path::Proxied(proxy, url)
            }
            Self::Redis(server) => {
                let proxy = TcpProxy::start(([127, 0, 0, 1], server.port).into()).await?;
                let url = format!("redis://{}", proxy.address());
                Path::Proxied(proxy, url)
            }
        })
    }

    /// What its processes have used so far. The embedded DynamoDB has none of its own.
    pub(crate) fn counts(&self) -> Result<Vec<(u32, Counts)>> {
        let first = match self {
            Self::DynamoDb(_) => None,
            Self::Postgres(server) => server.pid().map(|pid| pid.as_raw_pid().unsigned_abs()),
            Self::Redis(server) => server.process.as_ref().map(Child::id),
        };
        let Some(first) = first else { return Ok(Vec::new()) };
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children"))?;
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        // One may end meanwhile.
        let counts = |pid| Some((pid, Counts::of(pid).ok()?));
        Ok(std::iter::once(first).chain(children).filter_map(counts).collect())
    }
}

impl Path {
    /// How many requests came this way.
    pub(crate) fn requests(&self) -> u64 {
        match self {
            Self::DynamoDb(database) => database.usage().requests(),
            Self::Proxied(proxy, _) => proxy.requests(),
        }
    }
}
