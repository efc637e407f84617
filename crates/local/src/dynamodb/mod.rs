//! DynamoDB, embedded: one in-memory database, any number of proxies.
//!
//! The database is [dynoxide](https://docs.rs/dynoxide-rs), behind its own HTTP server. A [`Proxy`] in front of it
//! counts requests and injects faults. Every process of the function has its own proxy, so that the usage of each
//! invocation is known exactly, even when several run at once.
//!
//! dynoxide runs on the thread that polls it, behind one lock. In memory an operation takes well under a millisecond, so
//! it can share the caller's runtime; a benchmark should give it a separate runtime.

mod fault;
mod proxy;
pub(crate) mod request;
mod table;
pub(crate) mod usage;

use std::{fmt::Display, sync::Arc};

use dynoxide::Database;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use fault::{Apply, Fault, FaultId, Faults, Gate};
pub use proxy::Proxy;
pub use request::{ItemAnswer, ItemRequest, StoreRequest, Verb};
pub use table::Table;
pub use usage::Usage;

use crate::error::Error;
use crate::http::{Task, listen};
use proxy::{Arrivals, Upstream};
use usage::Ledger;

/// An embedded DynamoDB. Clones share the database, its faults and its totals.
#[derive(Clone, Debug)]
pub struct DynamoDb {
    inner: Arc<Inner>,
}

struct Inner {
    database: Database,
    upstream: Upstream,
    faults: Faults,
    total: Arc<Ledger>,
    arrivals: Arc<Arrivals>,
    _server: Task,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

impl DynamoDb {
    /// Starts an empty database.
    ///
    /// # Errors
    /// [`Error::Failed`] if it cannot be opened, [`Error::Listen`] if no loopback port can.
    pub async fn start() -> Result<Self, Error> {
        let database = Database::memory().map_err(refused("opening the database"))?;
        let listener = listen().await?;
        let upstream = Upstream::new(listener.local_addr().map_err(Error::Listen)?);
        let serving = database.clone();
        // The task ends when it is aborted; its connections end with the proxies that hold them.
        let server = Task(tokio::spawn(async move {
            let _ =
                dynoxide::server::serve_with_shutdown(listener, serving, std::future::pending())
                    .await;
        }));
        let inner = Inner {
            database,
            upstream,
            faults: Faults::default(),
            total: Arc::default(),
            arrivals: Arc::default(),
            _server: server,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Opens another proxy of the same data.
    ///
    /// # Errors
    /// [`Error::Listen`] if no loopback port can be opened.
    pub async fn proxy(&self) -> Result<Proxy, Error> {
        Proxy::start(
            self.inner.upstream.clone(),
            self.inner.faults.clone(),
            Arc::clone(&self.inner.total),
            Arc::downgrade(&self.inner.arrivals),
        )
        .await
    }

    /// Creates a table, billed on demand, with its time to live if it has one.
    ///
    /// # Errors
    /// [`Error::Failed`]: the table exists already, or its name or key is invalid.
    pub fn create_table(&self, table: &Table) -> Result<(), Error> {
        let what = || format!("creating the table {}", table.name);
        let database = &self.inner.database;
        database.create_table(request(table.create_request(), what)?).map_err(refused(what()))?;
        if let Some(ttl) = table.ttl_request() {
            database.update_time_to_live(request(ttl, what)?).map_err(refused(what()))?;
        }
        Ok(())
    }

    /// All items of a table, in DynamoDB's JSON (`{"id":{"S":"..."}}`), in no particular order.
    ///
    /// # Errors
    /// [`Error::Failed`]: there is no such table.
    pub fn items(&self, table: &str) -> Result<Vec<Value>, Error> {
        let what = || format!("reading the table {table}");
        let mut items = Vec::new();
        let mut start = Value::Null;
        loop {
            let mut scan = json!({ "TableName": table, "ConsistentRead": true });
            if let (Value::Object(scan), false) = (&mut scan, start.is_null()) {
                scan.insert("ExclusiveStartKey".to_owned(), start);
            }
            let page = self.inner.database.scan(request(scan, what)?).map_err(refused(what()))?;
            let mut page = serde_json::to_value(page).unwrap_or_default();
            if let Some(Value::Array(found)) = page.get_mut("Items").map(Value::take) {
                items.extend(found);
            }
            match page.get_mut("LastEvaluatedKey").map(Value::take) {
                None | Some(Value::Null) => return Ok(items),
                Some(next) => start = next,
            }
        }
    }

    /// One item, by its key in DynamoDB's JSON.
    ///
    /// # Errors
    /// [`Error::Failed`]: there is no such table, or the key is not one of it.
    pub fn item(&self, table: &str, key: &Value) -> Result<Option<Value>, Error> {
        let what = || format!("reading an item of the table {table}");
        let get = request(json!({ "TableName": table, "Key": key, "ConsistentRead": true }), what)?;
        let found = self.inner.database.get_item(get).map_err(refused(what()))?;
        Ok(serde_json::to_value(found)
            .ok()
            .and_then(|mut found| found.get_mut("Item").map(Value::take)))
    }

    /// Writes an item, in DynamoDB's JSON, without a proxy: it is not counted and gets no fault.
    ///
    /// # Errors
    /// [`Error::Failed`]: there is no such table, or the item lacks the table's key.
    pub fn put_item(&self, table: &str, item: &Value) -> Result<(), Error> {
        let what = || format!("writing an item of the table {table}");
        let put = request(json!({ "TableName": table, "Item": item }), what)?;
        self.inner.database.put_item(put).map_err(refused(what()))?;
        Ok(())
    }

    /// Deletes an item without a proxy.
    ///
    /// # Errors
    /// [`Error::Failed`]: there is no such table, or the key is not one of it.
    pub fn delete_item(&self, table: &str, key: &Value) -> Result<(), Error> {
        let what = || format!("deleting an item of the table {table}");
        let delete = request(json!({ "TableName": table, "Key": key }), what)?;
        self.inner.database.delete_item(delete).map_err(refused(what()))?;
        Ok(())
    }

    /// The requests of all proxies together, since the start.
    pub fn usage(&self) -> Usage {
        self.inner.total.snapshot()
    }

    /// The faults that the proxies inject. They share one list.
    pub fn faults(&self) -> &Faults {
        &self.inner.faults
    }
}

/// Reads one of dynoxide's request types out of JSON.
fn request<T: DeserializeOwned>(json: Value, what: impl Fn() -> String) -> Result<T, Error> {
    serde_json::from_value(json).map_err(refused(what()))
}

fn refused<E>(what: impl Display) -> impl FnOnce(E) -> Error
where
    E: std::error::Error + Send + Sync + 'static,
{
    Error::because(format!("embedded DynamoDB failed at {what}"))
}
