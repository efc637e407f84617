//! What a run makes in the server of a URL: a schema of PostgreSQL, or names of Redis that begin with a prefix. It is new for
//! each run, and removed at its end.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use lambda_idempotency_core::{record::Owner, retry::chain};
use redis::aio::MultiplexedConnection;
use tokio::time::{sleep, timeout};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::{Error, TestedStore};

/// What the name of a place begins with.
const NAME: &str = "idempotency_chaos_";
/// How long the server is given to answer before the run, as a function gives it at its start.
const FIRST_ANSWER: Duration = Duration::from_secs(5);
/// How long the server is given to remove the place. It may have been cut off until now.
const REMOVAL: Duration = Duration::from_secs(20);
/// How long it waits before it removes the place, and after an attempt that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// Where the records of a run are.
pub(crate) struct Place {
    store: TestedStore,
    /// The name of the schema, and what the prefix begins with.
    name: String,
    /// Something may be there that has to be removed.
    is_made: AtomicBool,
}

impl Place {
    /// A place in this store. Nothing is made yet.
    pub(crate) fn new(store: &TestedStore) -> Result<Self, Error> {
        let number = Owner::random().map_err(|error| Error::Store(error.to_string()))?.to_string();
        let name = format!("{NAME}{}", number.get(..12).unwrap_or_default());
        Ok(Self { store: store.clone(), name, is_made: AtomicBool::new(false) })
    }

    /// The URL of the store in this place, if the server is not the run's own.
    pub(super) fn url(&self) -> Option<String> {
        match &self.store {
            TestedStore::Postgres(url) => Some(in_schema(url.as_ref()?, &self.name)),
            TestedStore::Redis(url) => url.clone(),
            TestedStore::DynamoDb => None,
        }
    }

    /// What the names of records begin with in Redis, if the server is not the run's own.
    pub(crate) fn prefix(&self) -> Option<String> {
        matches!(self.store, TestedStore::Redis(Some(_))).then(|| format!("{}:", self.name))
    }

    /// Makes the place, or refuses a server that cannot have it.
    pub(super) async fn make(&self) -> Result<(), Error> {
        let made = async {
            match &self.store {
                TestedStore::Postgres(Some(url)) => {
                    let create = format!("CREATE SCHEMA {}", self.name);
                    in_postgres(url, &create, || self.is_made.store(true, Ordering::Relaxed))
                        .await?;
                    // PgBouncer can ignore the options of a URL. The run would then work in the user's schema.
                    let inside = in_schema(url, &self.name);
                    let current = in_postgres(&inside, "SELECT current_schema()", || {}).await?;
                    if current.as_ref() == Some(&self.name) {
                        Ok(())
                    } else {
                        Err(IGNORED_SCHEMA.to_owned())
                    }
                }
                TestedStore::Redis(Some(url)) => {
                    let mut server = connect(url).await?;
                    let mut info = redis::cmd("INFO");
                    let info: String = ask(&mut server, info.arg("cluster")).await?;
                    if info.contains("cluster_enabled:1") {
                        return Err(CLUSTER.to_owned());
                    }
                    self.is_made.store(true, Ordering::Relaxed);
                    Ok(())
                }
                _ => Ok(()),
            }
        };
        let made = timeout(FIRST_ANSWER, made).await;
        made.unwrap_or_else(|_| Err("its server does not answer".to_owned())).map_err(Error::Store)
    }

    /// Removes what the run has made. The run's processes have ended.
    ///
    /// # Errors
    /// The server did not do it.
    pub(crate) async fn remove(&self) -> Result<(), String> {
        if !self.is_made.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let mut cause = "its server does not answer".to_owned();
        // What the processes have sent before their end arrives.
        sleep(PAUSE).await;
        let removed = timeout(REMOVAL, async {
            // What cannot be reached now may be there again soon.
            while let Err(error) = self.remove_once().await {
                cause = error;
                sleep(PAUSE).await;
            }
        });
        let removed = removed.await;
        removed.map_err(|_| {
            let remedy = self.remedy();
            format!("what the run has made in the store could not be removed ({cause}): {remedy}")
        })
    }

    async fn remove_once(&self) -> Result<(), String> {
        match &self.store {
            TestedStore::Postgres(Some(url)) => {
                let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
                in_postgres(url, &drop, || {}).await.map(|_| ())
            }
            TestedStore::Redis(Some(url)) => self.remove_names(&mut connect(url).await?).await,
            _ => Ok(()),
        }
    }

    /// Deletes until nothing is found.
    async fn remove_names(&self, server: &mut MultiplexedConnection) -> Result<(), String> {
        loop {
            let (mut cursor, mut found) = (0_u64, false);
            loop {
                let mut scan = redis::cmd("SCAN");
                scan.arg(cursor).arg("MATCH").arg(format!("{}:*", self.name));
                let (next, names): (u64, Vec<String>) =
                    ask(server, scan.arg("COUNT").arg(1000)).await?;
                if !names.is_empty() {
                    found = true;
                    let _: u64 = ask(server, redis::cmd("DEL").arg(names)).await?;
                }
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
            if !found {
                return Ok(());
            }
        }
    }

    /// How the user removes it.
    fn remedy(&self) -> String {
        match self.store {
            TestedStore::Redis(_) => format!(
                "delete the keys that begin with `{}:`, or wait a day until they have expired",
                self.name
            ),
            _ => format!("run DROP SCHEMA {} CASCADE in its database", self.name),
        }
    }
}

/// Why a cluster is refused.
const CLUSTER: &str = "it is a cluster, whose servers the function would reach past the proxy that injects faults: use a \
     single server";

/// Why a server is refused that does not use the schema of the URL.
const IGNORED_SCHEMA: &str = "a proxy before it, such as PgBouncer, does not pass on the schema that the run has made for \
     itself: name the server itself in the URL";

/// The URL with the schema as the only one in which names are looked for. A URL may have options already.
fn in_schema(url: &str, schema: &str) -> String {
    let option = format!("-c%20search_path%3D{schema}");
    let Some((server, query)) = url.split_once('?') else {
        return format!("{url}?options={option}");
    };
    let mut has_options = false;
    let parameters = query.split('&').map(|parameter| match parameter.strip_prefix("options=") {
        Some(others) => {
            has_options = true;
            format!("options={others}%20{option}")
        }
        None => parameter.to_owned(),
    });
    let query = parameters.collect::<Vec<_>>().join("&");
    let more = if has_options { String::new() } else { format!("&options={option}") };
    format!("{server}?{query}{more}")
}

/// Runs a statement on a connection of its own, which `connected` is told of before, and returns the first value.
async fn in_postgres(
    url: &str,
    statement: &str,
    connected: impl FnOnce(),
) -> Result<Option<String>, String> {
    let config: tokio_postgres::Config =
        url.parse().map_err(|_| "its URL cannot be read".to_owned())?;
    let (client, connection) = config.connect(NoTls).await.map_err(|error| chain(&error))?;
    connected();
    let answer = tokio::select! {
        answer = client.simple_query(statement) => answer.map_err(|error| chain(&error))?,
        _ = connection => return Err("its server has closed the connection".to_owned()),
    };
    Ok(answer.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    }))
}

async fn connect(url: &str) -> Result<MultiplexedConnection, String> {
    // Valkey speaks the same protocol.
    let url = url.strip_prefix("valkey").map_or(url.to_owned(), |rest| format!("redis{rest}"));
    let client = redis::Client::open(url).map_err(|_| "its URL cannot be read".to_owned())?;
    client.get_multiplexed_async_connection().await.map_err(|error| error.to_string())
}

async fn ask<T: redis::FromRedisValue>(
    server: &mut MultiplexedConnection,
    command: &redis::Cmd,
) -> Result<T, String> {
    command.query_async(server).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_is_added_to_the_options_of_a_url() {
        for (url, expected) in [
            ("postgres://h/d", "postgres://h/d?options=-c%20search_path%3Ds"),
            (
                "postgres://h/d?sslmode=disable",
                "postgres://h/d?sslmode=disable&options=-c%20search_path%3Ds",
            ),
            (
                "postgres://h/d?options=-c%20a%3Db&sslmode=disable",
                "postgres://h/d?options=-c%20a%3Db%20-c%20search_path%3Ds&sslmode=disable",
            ),
        ] {
            assert_eq!(in_schema(url, "s"), expected);
            let config: tokio_postgres::Config = expected.parse().unwrap();
            assert!(config.get_options().unwrap().ends_with("-c search_path=s"));
        }
    }

    #[test]
    fn a_place_is_new_each_time() {
        let store = TestedStore::Postgres(Some("postgres://db/d".to_owned()));
        let places = [Place::new(&store).unwrap(), Place::new(&store).unwrap()];
        assert_ne!(places[0].name, places[1].name);
        assert!(places[0].name.len() < 52, "as the name of a table");
    }
}
