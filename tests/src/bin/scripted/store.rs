//! The store that the environment names: `IDEMPOTENCY_STORE` with the URL of a server, or else a table in DynamoDB.

use std::env;

use lambda_idempotency::{DynamoDbStore, Idempotency, PostgresStore, RedisStore};
use lambda_runtime::Error;

use super::clock::SkewedClock;

/// The URL of the PostgreSQL server that keeps the records, if one does.
pub(crate) fn postgres() -> Option<String> {
    env::var("IDEMPOTENCY_STORE").ok().filter(|url| url.starts_with("postgres"))
}

fn is_redis() -> bool {
    let starts = ["redis", "valkey"];
    env::var("IDEMPOTENCY_STORE").is_ok_and(|url| starts.iter().any(|start| url.starts_with(start)))
}

/// With this clock, if there is one. Servers are not asked at the start, so that a process can start in an outage.
pub(super) async fn idempotency(clock: Option<SkewedClock>) -> Result<Idempotency, Error> {
    let idempotency = if postgres().is_some() {
        let store = PostgresStore::builder_from_env()?;
        Idempotency::new(match clock {
            Some(clock) => store.clock(clock).build()?,
            None => store.build()?,
        })
    } else if is_redis() {
        let store = RedisStore::builder_from_env()?;
        Idempotency::new(match clock {
            Some(clock) => store.clock(clock).build()?,
            None => store.build()?,
        })
    } else {
        Idempotency::new(match clock {
            Some(clock) => DynamoDbStore::builder_from_env().await?.clock(clock).build()?,
            None => DynamoDbStore::from_env().await?,
        })
    };
    Ok(match clock {
        Some(clock) => idempotency.with_clock(clock),
        None => idempotency,
    })
}
