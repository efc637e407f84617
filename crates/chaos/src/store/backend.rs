//! The store while it runs: faults are injected into it, and the rig reads it past them.

use std::time::Duration;

use lambda_idempotency_local::{DynamoDb, FaultId, ServerKind};
use lambda_idempotency_testkit::tcp::TcpFaultId;
use serde_json::{Value, json};

use super::{CLAIMS, Item, KEY, ORDERS, Row, server::Server};
use crate::{Error, Settings, TestedStore, schedule, store_faults::StoreFault};

pub(crate) enum Backend {
    DynamoDb(DynamoDb),
    Server(Box<Server>),
}

/// Names a fault that was injected into requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InjectedFault {
    DynamoDb(FaultId),
    Server(TcpFaultId),
}

impl Backend {
    pub(crate) async fn start(settings: &Settings) -> Result<Self, Error> {
        let kind = match settings.store {
            TestedStore::DynamoDb => return Ok(Self::DynamoDb(DynamoDb::start().await?)),
            TestedStore::Postgres => ServerKind::Postgres,
            TestedStore::Redis => ServerKind::Redis,
        };
        Ok(Self::Server(Box::new(Server::start(kind, &settings.server_settings).await?)))
    }

    /// The variable that says to the function where its store is.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        match self {
            Self::DynamoDb(_) => ("IDEMPOTENCY_TABLE", CLAIMS.to_owned()),
            Self::Server(server) => ("IDEMPOTENCY_STORE", server.url()),
        }
    }

    /// Injects a fault from now on. Its number, if it is one of requests, and for how long it lasts.
    pub(crate) fn inject(&self, fault: &StoreFault) -> (Option<InjectedFault>, Option<Duration>) {
        match self {
            Self::DynamoDb(dynamodb) => {
                let (fault, lasting) = fault.fault();
                let id = fault.map(|fault| dynamodb.faults().add(fault.table(CLAIMS)));
                (id.map(InjectedFault::DynamoDb), lasting)
            }
            Self::Server(server) => {
                let (id, lasting) = server.inject(fault);
                (id.map(InjectedFault::Server), lasting)
            }
        }
    }

    pub(crate) fn heal(&self, id: InjectedFault) {
        match (self, id) {
            (Self::DynamoDb(dynamodb), InjectedFault::DynamoDb(id)) => dynamodb.faults().remove(id),
            (Self::Server(server), InjectedFault::Server(id)) => server.faults().remove(id),
            // It was injected into this store.
            _ => {}
        }
    }

    pub(crate) fn heal_all(&self) {
        match self {
            Self::DynamoDb(dynamodb) => dynamodb.faults().clear(),
            Self::Server(server) => server.faults().clear(),
        }
    }

    pub(crate) fn injected(&self, id: InjectedFault) -> u64 {
        match (self, id) {
            (Self::DynamoDb(dynamodb), InjectedFault::DynamoDb(id)) => {
                dynamodb.faults().injected(id)
            }
            (Self::Server(server), InjectedFault::Server(id)) => server.faults().injected(id),
            _ => 0,
        }
    }

    pub(crate) fn kills(&self) -> u64 {
        match self {
            Self::DynamoDb(_) => 0,
            Self::Server(server) => server.kills(),
        }
    }

    /// Whether the server runs: it is not being started again.
    ///
    /// # Errors
    /// It could not be started again.
    pub(crate) fn is_up(&self) -> Result<bool, Error> {
        match self {
            Self::DynamoDb(_) => Ok(true),
            Self::Server(server) => server.is_up(),
        }
    }

    /// How many requests the function has sent, and the write units of DynamoDB.
    pub(crate) fn usage(&self) -> (u64, f64) {
        match self {
            Self::DynamoDb(dynamodb) => {
                let usage = dynamodb.usage();
                (usage.requests(), usage.write_units)
            }
            Self::Server(server) => (server.requests(), 0.0),
        }
    }

    pub(crate) async fn rows(&self) -> Result<Vec<Row>, Error> {
        match self {
            Self::DynamoDb(dynamodb) => {
                Ok(dynamodb.items(CLAIMS)?.iter().map(Row::of_item).collect())
            }
            Self::Server(server) => server.rows().await,
        }
    }

    /// The items of the function's own table.
    pub(crate) async fn items(&self) -> Result<Vec<Item>, Error> {
        match self {
            Self::DynamoDb(dynamodb) => {
                let id = |item: &Value| item.get(KEY)?.get("S")?.as_str().map(str::to_owned);
                let item =
                    |item: &Value| Item { id: id(item).unwrap_or_default(), placed: counter(item) };
                Ok(dynamodb.items(ORDERS)?.iter().map(item).collect())
            }
            Self::Server(server) => match server.database() {
                Some(database) => database.items().await,
                None => Ok(Vec::new()),
            },
        }
    }

    /// How often an order is placed at this moment, where effects are in transactions.
    pub(crate) async fn placed(&self, order: usize) -> Result<u64, Error> {
        match self {
            Self::DynamoDb(dynamodb) => {
                let key = json!({ KEY: { "S": schedule::id(order) } });
                Ok(dynamodb.item(ORDERS, &key)?.as_ref().map_or(0, counter))
            }
            Self::Server(server) => match server.database() {
                Some(database) => database.placed(&schedule::id(order)).await,
                None => Ok(0),
            },
        }
    }
}

fn counter(item: &Value) -> u64 {
    let placed = item.pointer("/placed/N").and_then(Value::as_str);
    placed.and_then(|placed| placed.parse().ok()).unwrap_or_default()
}
