//! Building a store: what can be set, and its defaults.

use std::{fmt, sync::Arc, time::Duration};

use aws_sdk_dynamodb::{Client, config::retry::RetryConfig};
use lambda_idempotency_core::clock::{Clock, SystemClock};

use crate::{
    attributes::Attributes, config::Config, config_error::DynamoDbConfigError, store::DynamoDbStore,
};

/// How long one request may take before it is tried again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a failed attempt, and the most it grows to.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(25), Duration::from_millis(400));

impl DynamoDbStore {
    /// The store in `table`, with every setting at its default.
    ///
    /// Nothing is sent: a table that is missing shows in the first write.
    #[must_use]
    pub fn new(client: Client, table: impl Into<String>) -> Self {
        Self::builder(client, table).build_unchecked()
    }

    /// The store in `table`, to be set up.
    pub fn builder(client: Client, table: impl Into<String>) -> DynamoDbStoreBuilder {
        DynamoDbStoreBuilder::new(client, table.into())
    }
}

/// A [`DynamoDbStore`] that is not the default one; see [`DynamoDbStore::builder`].
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
            attempt_timeout: ATTEMPT_TIMEOUT,
            backoff: BACKOFF,
            partiql: true,
            sdk_logs: false,
            clock: Arc::new(SystemClock),
        };
        Self { client, config }
    }

    /// Other attribute names.
    pub fn attributes(mut self, names: Attributes) -> Self {
        self.config.attributes = names;
        self
    }

    /// How long one request may take before it is tried again, as long as the deadline of the call
    /// allows. Default 1 s: DynamoDB answers in milliseconds, so whatever takes longer is lost.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.config.attempt_timeout = timeout;
        self
    }

    /// The pause after a failed attempt, and the most it doubles to. Default 25 ms and 400 ms; the
    /// second half of each pause is random.
    pub fn backoff(mut self, first: Duration, most: Duration) -> Self {
        self.config.backoff = (first, most);
        self
    }

    /// Sends each write as a `PutItem` or `DeleteItem` of its own, never several as one
    /// `BatchExecuteStatement`. For roles without the `dynamodb:PartiQL*` permissions, which no
    /// policy template of AWS SAM grants. Costs a request for each record.
    pub fn without_partiql(mut self) -> Self {
        self.config.partiql = false;
        self
    }

    /// Lets the AWS SDK log and trace what it does for the store, which it otherwise may not: at the
    /// level `TRACE` it writes whole requests and responses, with keys and results in them. For a
    /// closer look at a table without real data.
    pub fn with_sdk_logs(mut self) -> Self {
        self.config.sdk_logs = true;
        self
    }

    /// Another clock than the machine's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.config.clock = Arc::new(clock);
        self
    }

    /// The store.
    ///
    /// # Errors
    /// [`DynamoDbConfigError::UnfitName`] and [`DynamoDbConfigError::NameUsedTwice`] for attribute names.
    pub fn build(self) -> Result<DynamoDbStore, DynamoDbConfigError> {
        self.config.attributes.check()?;
        Ok(self.build_unchecked())
    }

    pub(crate) fn build_unchecked(self) -> DynamoDbStore {
        // A retry that the store does not know of would meet the item it wrote itself.
        let config =
            self.client.config().to_builder().retry_config(RetryConfig::disabled()).build();
        DynamoDbStore { client: Client::from_conf(config), config: Arc::new(self.config) }
    }
}

impl fmt::Debug for DynamoDbStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}
