//! Building a store: what can be set, and its defaults.

use std::{fmt, sync::Arc, time::Duration};

use aws_sdk_dynamodb::Client;
use lambda_idempotency_core::{clock::Clock, request_slots::RequestSlots, retry::Timing};

use crate::{
    attributes::Attributes,
    config::{Config, DynamoDbConfigError, MOST_REQUESTS, check},
    connection::client_of,
    store::DynamoDbStore,
};
#[cfg(feature = "from-env")]
use crate::{config::table_from_env, connection::client_from_env};

impl DynamoDbStore {
    /// The store in `table`, with every setting at its default.
    ///
    /// No request is sent, so a missing table is reported by the first write.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self::builder(client, table).build_unchecked()
    }

    /// A builder of the store in `table`, with every setting at its default.
    pub fn builder(client: Client, table: impl Into<String>) -> DynamoDbStoreBuilder {
        DynamoDbStoreBuilder::new(client, table.into())
    }
}

#[cfg(feature = "from-env")]
impl DynamoDbStore {
    /// The store whose table `IDEMPOTENCY_TABLE` names, or `IDEMPOTENCY_STORE` as `dynamodb:TABLE`, with
    /// credentials and region as the SDK finds them (in Lambda: those of the function's role).
    ///
    /// Call it once, before the runtime starts: it loads the configuration, and requests of one
    /// client share their connections.
    ///
    /// The SDK's default settings do not suit Lambda and are replaced. The SDK retries silently, so
    /// a claim whose response was lost would find its own record and seem to be taken; its first
    /// pause is a second; and only the connection has a time limit (3.1 s).
    ///
    /// # Errors
    /// [`DynamoDbConfigError::NoTable`] if no variable names a table, [`DynamoDbConfigError::TwoTables`] if they name
    /// two, [`DynamoDbConfigError::UnfitTable`] and [`DynamoDbConfigError::NotText`] if one cannot be read;
    /// [`DynamoDbConfigError::NoRegion`] if no region is configured.
    pub async fn from_env() -> Result<Self, DynamoDbConfigError> {
        Ok(Self::builder_from_env().await?.build_unchecked())
    }

    /// As [`from_env`](Self::from_env), as a builder for further settings.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub async fn builder_from_env() -> Result<DynamoDbStoreBuilder, DynamoDbConfigError> {
        let table = table_from_env()?;
        let client = client_from_env().await.ok_or(DynamoDbConfigError::NoRegion)?;
        Ok(Self::builder(client, table))
    }
}

/// Builds a [`DynamoDbStore`] with other settings than the defaults; see
/// [`DynamoDbStore::builder`].
#[derive(Clone)]
#[must_use = "call `build`"]
pub struct DynamoDbStoreBuilder {
    client: Client,
    config: Config,
}

impl DynamoDbStoreBuilder {
    fn new(client: Client, table: String) -> Self {
        let config = Config {
            table,
            region: client.config().region().map_or_else(|| "?".into(), ToString::to_string),
            attributes: Attributes::default(),
            index: None,
            timing: Timing::default(),
            partiql: true,
            sdk_logs: false,
        };
        Self { client, config }
    }

    /// The names of the attributes. Default: those of Powertools.
    pub fn attributes(mut self, names: Attributes) -> Self {
        self.config.attributes = names;
        self
    }

    /// The table has this global secondary index, with the partition key [`unfinished`](Attributes::unfinished) of type S,
    /// no sort key, and the projection `KEYS_ONLY`. Set it for a relay or a recovery: its sweeps then read what is left in
    /// place of the whole table. Every store writes the attribute, with this setting and without it. Default: none.
    ///
    /// ```no_run
    /// use lambda_idempotency_dynamodb::DynamoDbStore;
    ///
    /// # fn store(client: aws_sdk_dynamodb::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let store = DynamoDbStore::builder(client, "orders-idempotency").index("unfinished").build()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An index costs a write unit whenever an item comes into it or leaves it: two for each record that keeps its
    /// payload or has messages, and none for others. It is eventually consistent, so a record can be found a moment later than
    /// it was written.
    pub fn index(mut self, name: impl Into<String>) -> Self {
        self.config.index = Some(name.into());
        self
    }

    /// How long one request may take before it is sent again, if the deadline of the call allows.
    /// Default 1 s: DynamoDB answers in milliseconds, so a slower response is most likely lost.
    /// Each request of a call that gets no answer doubles the time of the call's next.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.config.timing.attempt_timeout = timeout;
        self
    }

    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms; the
    /// second half of each pause is random.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.config.timing.backoff = (first, most);
        self
    }

    /// Sends each write as a separate `PutItem`, `UpdateItem` or `DeleteItem`, never several in one
    /// `BatchExecuteStatement`. For roles without the `dynamodb:PartiQL*` permissions, which no
    /// policy template of AWS SAM grants. Costs a request for each record.
    pub fn without_partiql(mut self) -> Self {
        self.config.partiql = false;
        self
    }

    /// Turns on the AWS SDK's logs and traces for requests of the store. At the level `TRACE` they
    /// contain whole requests and responses, with keys and results. Use it only with tables that
    /// hold no real data. Default: off.
    pub fn with_sdk_logs(mut self) -> Self {
        self.config.sdk_logs = true;
        self
    }

    /// The clock. Default: the machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.timing.clock = Arc::new(clock);
        self
    }

    /// Builds the store.
    ///
    /// # Errors
    /// [`DynamoDbConfigError::UnfitName`] and [`DynamoDbConfigError::NameUsedTwice`] for attribute names, and
    /// [`DynamoDbConfigError::UnfitPartition`] for a partition.
    pub fn build(self) -> Result<DynamoDbStore, DynamoDbConfigError> {
        check(&self.config.attributes)?;
        Ok(self.build_unchecked())
    }

    pub(crate) fn build_unchecked(self) -> DynamoDbStore {
        let slots = RequestSlots::new(MOST_REQUESTS, Arc::clone(&self.config.timing.clock));
        DynamoDbStore {
            client: client_of(&self.client),
            config: Arc::new(self.config),
            slots: Arc::new(slots),
        }
    }
}

impl fmt::Debug for DynamoDbStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
