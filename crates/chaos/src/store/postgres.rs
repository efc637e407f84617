//! The table in which the function commits its effects in PostgreSQL.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::Mutex, task::JoinHandle, time::sleep};
use tokio_postgres::{Client, NoTls, Row, types::ToSql};

use super::{Item, PATIENCE, unusable};
use crate::Error;

/// How long it waits before it asks again.
const PAUSE: Duration = Duration::from_millis(5);

const CREATE: &str =
    "CREATE TABLE IF NOT EXISTS orders (order_id text PRIMARY KEY, placed bigint NOT NULL)";
const PLACED: &str = "SELECT order_id, placed FROM orders WHERE order_id = $1";
const ALL: &str = "SELECT order_id, placed FROM orders";

/// A connection that reads the table, past all faults. It is opened again when the server was killed. Clones share it.
#[derive(Clone)]
pub(crate) struct Database {
    url: Arc<str>,
    connection: Arc<Mutex<Option<Connection>>>,
}

/// A client, and the task that reads its answers.
struct Connection(Client, JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.1.abort();
    }
}

impl Database {
    /// Creates the table, unless it is there.
    pub(super) async fn create(url: &str) -> Result<Self, Error> {
        let database = Self { url: url.into(), connection: Arc::default() };
        database.query(CREATE, &[]).await?;
        Ok(database)
    }

    /// How often an order is placed at this moment.
    pub(crate) async fn placed(&self, order: &str) -> Result<u64, Error> {
        let rows = self.query(PLACED, &[&order]).await?;
        Ok(rows.first().map_or(0, |row| item(row).placed))
    }

    pub(super) async fn items(&self) -> Result<Vec<Item>, Error> {
        Ok(self.query(ALL, &[]).await?.iter().map(item).collect())
    }

    /// Asks until the server answers.
    async fn query(&self, text: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        let start = Instant::now();
        let mut connection = self.connection.lock().await;
        loop {
            let asked = async {
                if connection.is_none() {
                    let (client, driver) = tokio_postgres::connect(&self.url, NoTls).await?;
                    let driver = tokio::spawn(async move { drop(driver.await) });
                    *connection = Some(Connection(client, driver));
                }
                match &*connection {
                    Some(Connection(client, _)) => client.query(text, values).await,
                    None => Ok(Vec::new()),
                }
            };
            match asked.await {
                Ok(rows) => return Ok(rows),
                Err(error) if start.elapsed() > PATIENCE => return Err(unusable(error)),
                Err(_) => *connection = None,
            }
            sleep(PAUSE).await;
        }
    }
}

fn item(row: &Row) -> Item {
    let placed = row.try_get::<_, i64>(1).ok().and_then(|placed| u64::try_from(placed).ok());
    Item { id: row.try_get(0).unwrap_or_default(), placed: placed.unwrap_or_default() }
}
