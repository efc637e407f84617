//! The floor of a server: one statement for each record, through the client libraries of the stores.

use lambda_runtime::{Error, LambdaEvent, service_fn};
use redis::aio::MultiplexedConnection;
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls, types::Type};

use crate::SqsEvent;

/// About as much as the store keeps for a record.
const BYTES: usize = 200;
const DAY_MILLIS: u64 = 86_400_000;
const CREATE: &str = "CREATE TABLE IF NOT EXISTS bare (id text PRIMARY KEY, data text NOT NULL)";
const INSERT: &str = "INSERT INTO bare SELECT * FROM unnest($1, $2) ON CONFLICT DO NOTHING";

enum Server {
    Postgres(Client),
    Redis(MultiplexedConnection),
}

pub(crate) async fn serve() -> Result<(), Error> {
    let url = std::env::var("IDEMPOTENCY_STORE")?;
    let server = &Server::connect(&url).await?;
    lambda_runtime::run(service_fn(async |event: LambdaEvent<SqsEvent>| {
        server.insert(event.payload.orders()?).await?;
        Ok::<Value, Error>(json!({ "batchItemFailures": [] }))
    }))
    .await
}

impl Server {
    async fn connect(url: &str) -> Result<Self, Error> {
        if url.starts_with("redis") {
            let client = redis::Client::open(url)?;
            return Ok(Self::Redis(client.get_multiplexed_async_connection().await?));
        }
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        #[allow(clippy::disallowed_methods, reason = "ends with the process")]
        tokio::spawn(connection);
        client.batch_execute(CREATE).await?;
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
        }
        Ok(())
    }
}
