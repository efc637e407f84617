//! A function that keeps its idempotency records in PostgreSQL or Redis, and whose configuration has no password.
//!
//! `IDEMPOTENCY_STORE` is `postgres://orders@HOST:5432/orders` or `rediss://orders@HOST:6379`. With `PASSWORD_SECRET` the
//! password is in that secret; without it, it is a token of IAM authentication.

use std::env;

use aws_config::BehaviorVersion;
use credentials::{Secret, Service, Tokens};
use lambda_idempotency::{Call, Failure, Idempotency, Operation, source::Sqs};
use lambda_runtime::{Error, tracing};
use serde::Deserialize;

#[derive(Deserialize)]
struct Order {
    id: String,
}

async fn place(order: Order, _call: Call) -> Result<(), Failure> {
    // Whatever placing an order is.
    drop(order.id);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    tracing::init_default_subscriber();
    let config = aws_config::load_defaults(BehaviorVersion::v2026_01_12()).await;
    let idempotency = match env::var("PASSWORD_SECRET") {
        Ok(id) => {
            let secret = Secret::new(aws_sdk_secretsmanager::Client::new(&config), id);
            Idempotency::from_env_with_password(move || {
                let secret = secret.clone();
                async move { secret.password().await }
            })
            .await?
        }
        Err(_) => {
            // The URL names the host, and a token for ElastiCache the cache.
            let (service, server) = match env::var("CACHE_NAME") {
                Ok(cache) => (Service::ElastiCache, cache),
                Err(_) => (Service::Rds, env::var("DATABASE_SERVER")?),
            };
            let tokens = Tokens::new(&config, service, server, "orders")?;
            Idempotency::from_env_with_password(move || {
                let tokens = tokens.clone();
                async move { tokens.token().await }
            })
            .await?
        }
    };
    let orders = Operation::new("place-order").key("id");
    lambda_runtime::run(idempotency.on(Sqs::new(), &orders, place)?).await
}
