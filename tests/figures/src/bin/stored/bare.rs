//! The floors of a server: plain statements, through the client libraries of the stores.
//!
//! `bare` sends one for each record: `SET .. NX`, or an `INSERT` of a key and a text. `bare-prepared` has PostgreSQL read and
//! plan it once. `row` writes what the store keeps for a record, in the columns of its table and as often: an `INSERT`, and an
//! `UPDATE` of the keys that it inserted, without a condition.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use lambda_runtime::{Error, LambdaEvent, service_fn};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls, Statement, types::Type};

use crate::SqsEvent;

/// About as much as the store keeps for a record.
const BYTES: usize = 200;
const DAY_MILLIS: u64 = 86_400_000;
const CREATE: &str = "CREATE TABLE IF NOT EXISTS bare (id text PRIMARY KEY, data text NOT NULL)";
const INSERT: &str = "INSERT INTO bare SELECT * FROM unnest($1, $2) ON CONFLICT DO NOTHING";
/// The planner finds the keys by the index, as it does for the store.
const CREATE_ROWS: &str = "CREATE TABLE IF NOT EXISTS same_row (LIKE idempotency); \
     CREATE UNIQUE INDEX IF NOT EXISTS same_row_key ON same_row (key); SET enable_seqscan = off";
const INSERT_ROWS: &str = "INSERT INTO same_row (key, status, owner, failed_attempts, lost_attempts, consecutive_losses, \
     fence, lease_until, expires_at, provenance) \
     SELECT w.key, 'INPROGRESS', md5(w.key)::uuid, 0, 0, 0, 1, $3, $4, w.provenance::json \
     FROM unnest($1, $2) AS w(key, provenance) ON CONFLICT (key) DO NOTHING RETURNING key";
const UPDATE_ROWS: &str = "UPDATE same_row SET status = 'COMPLETED', lease_until = NULL, expires_at = $2, \
     result = 'null' WHERE key = ANY($1)";

enum Server {
    Postgres(Client),
    PostgresPrepared(Client, Statement),
    PostgresRows(Client),
    Redis(MultiplexedConnection),
}

pub(crate) async fn serve(variant: &str) -> Result<(), Error> {
    let url = std::env::var("IDEMPOTENCY_STORE")?;
    let server = &Server::connect(variant, &url).await?;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        server.insert(event.payload.orders()?).await?;
        Ok::<Value, Error>(json!({ "batchItemFailures": [] }))
    }))
    .await
}

impl Server {
    async fn connect(variant: &str, url: &str) -> Result<Self, Error> {
        if url.starts_with("redis") {
            let client = redis::Client::open(url)?;
            return Ok(Self::Redis(client.get_multiplexed_async_connection().await?));
        }
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        #[allow(clippy::disallowed_methods, reason = "ends with the process")]
        tokio::spawn(connection);
        if variant == "row" {
            client.batch_execute(CREATE_ROWS).await?;
            return Ok(Self::PostgresRows(client));
        }
        client.batch_execute(CREATE).await?;
        if variant == "bare-prepared" {
            let types = [Type::TEXT_ARRAY, Type::TEXT_ARRAY];
            let insert = client.prepare_typed(INSERT, &types).await?;
            return Ok(Self::PostgresPrepared(client, insert));
        }
        Ok(Self::Postgres(client))
    }

    async fn insert(&self, orders: Vec<String>) -> Result<(), Error> {
        let data = "x".repeat(BYTES);
        match self {
            Self::Redis(connection) => {
                let mut pipeline = redis::pipe();
                for order in orders {
                    let key = format!("bare:{order}");
                    pipeline.cmd("SET").arg(key).arg(&data).arg("NX").arg("PX").arg(DAY_MILLIS);
                }
                let _: Vec<redis::Value> = pipeline.query_async(&mut connection.clone()).await?;
            }
            Self::Postgres(client) => {
                let all = vec![data; orders.len()];
                let (ids, data) = ((&orders as _, Type::TEXT_ARRAY), (&all as _, Type::TEXT_ARRAY));
                client.query_typed(INSERT, &[ids, data]).await?;
            }
            Self::PostgresPrepared(client, insert) => {
                let all = vec![data; orders.len()];
                client.query(insert, &[&orders, &all]).await?;
            }
            Self::PostgresRows(client) => insert_rows(client, &orders).await?,
        }
        Ok(())
    }
}

/// The rows of the orders: inserted, and those that are new are replaced.
async fn insert_rows(client: &Client, orders: &[String]) -> Result<(), Error> {
    let mut keys: Vec<String> = orders.iter().map(|order| key(order)).collect();
    keys.sort_unstable();
    let provenance = |_: &String| json!({ "text": "x".repeat(BYTES) }).to_string();
    let provenance: Vec<String> = orders.iter().map(provenance).collect();
    let (lease, expiry) = (1_795_251_660_000_i64, 1_795_338_000_000_i64);
    let inserted = client
        .query_typed(
            INSERT_ROWS,
            &[
                (&keys, Type::TEXT_ARRAY),
                (&provenance, Type::TEXT_ARRAY),
                (&lease, Type::INT8),
                (&expiry, Type::INT8),
            ],
        )
        .await?;
    let new: Vec<&str> = inserted.iter().map(|row| row.get(0)).collect();
    if !new.is_empty() {
        let parameters = [(&new as _, Type::TEXT_ARRAY), (&expiry as _, Type::INT8)];
        client.query_typed(UPDATE_ROWS, &parameters).await?;
    }
    Ok(())
}

/// A key like those of the library: a name and 64 digits.
fn key(order: &str) -> String {
    let digits = (0..4_u8).map(|part| {
        let mut hasher = DefaultHasher::new();
        (part, order).hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    });
    format!("place-order#{}", digits.collect::<String>())
}
