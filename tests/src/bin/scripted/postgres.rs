//! The table of orders in PostgreSQL: as that in DynamoDB, with a row for each order and for each attempt.

use lambda_idempotency::postgres::{PostgresStatement, PostgresValue};
use lambda_runtime::Error;
use tokio_postgres::{NoTls, connect, types::ToSql};

use super::{order::Order, store};

const COUNT: &str = "INSERT INTO orders AS o VALUES ($1, 1) \
                     ON CONFLICT (order_id) DO UPDATE SET placed = o.placed + 1";

/// Adds one to the number of times that the order was placed: a duplicate makes it 2.
pub(super) fn placing(order: &Order) -> PostgresStatement {
    count(&order.order_id)
}

/// A row that shows that this attempt placed its order.
pub(super) fn attempt(attempt: &str) -> PostgresStatement {
    PostgresStatement::new("INSERT INTO orders VALUES ($1, 1)").bind(format!("attempt {attempt}"))
}

/// Adds one to the counter of this name.
pub(crate) fn count(name: &str) -> PostgresStatement {
    PostgresStatement::new(COUNT).bind(name)
}

/// Applies effects in a transaction of their own.
pub(super) async fn commit(effects: &[PostgresStatement]) -> Result<(), Error> {
    let url = store::postgres().ok_or("the records are not in PostgreSQL")?;
    let (mut client, connection) = connect(&url, NoTls).await?;
    let applied = async move {
        let transaction = client.transaction().await?;
        for effect in effects {
            let texts = effect.values().iter().map(|value| match value {
                PostgresValue::Text(text) => text.as_deref(),
                _ => None,
            });
            let texts: Vec<_> = texts.collect();
            let values: Vec<_> = texts.iter().map(|text| text as &(dyn ToSql + Sync)).collect();
            transaction.execute(effect.text(), &values).await?;
        }
        transaction.commit().await
    };
    // The connection ends when the client is dropped.
    let (applied, driven) = tokio::join!(applied, connection);
    applied?;
    Ok(driven?)
}
