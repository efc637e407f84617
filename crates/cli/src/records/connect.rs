//! Which table, and how it is reached.
//!
//! Credentials are looked for before the first request: an error then names its cause and what to do, while requests would
//! repeat the search, and end with another error.

use std::{
    collections::BTreeMap,
    error::Error,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use aws_config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig};
use aws_credential_types::{
    Credentials,
    provider::{ProvideCredentials, SharedCredentialsProvider, future},
};
use aws_sdk_dynamodb::{
    Client, config,
    error::{ProvideErrorMetadata, SdkError},
};
use clap::Args;
use lambda_idempotency_core::{clock::Timestamp, settings::variable};
use lambda_idempotency_dynamodb::{Attributes, DynamoDbStore, SortKey};

use super::{
    clock::ServerClock,
    servers::{self, ATTEMPT, BrowsableStore, PATIENCE, Server, ServerOptions},
};
use crate::{failure::Failure, terminal};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    server: ServerOptions,

    /// The table [default: the environment variable IDEMPOTENCY_TABLE; in PostgreSQL: idempotency]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) table: Option<String>,

    /// The Region [default: as the AWS SDK finds it]
    #[arg(long, global = true, value_name = "NAME")]
    region: Option<String>,

    /// Another endpoint than that of AWS, such as of a local DynamoDB
    #[arg(long, global = true, value_name = "URL", value_parser = url)]
    endpoint_url: Option<String>,

    /// A file with the attributes that have other names, where a Powertools table has some: `{"expiration":"ttl"}`
    #[arg(long, global = true, value_name = "FILE.json")]
    attributes: Option<PathBuf>,

    /// The attribute of the sort key, for a table that also holds other items
    #[arg(long, global = true, value_name = "NAME")]
    sort_key: Option<String>,

    /// The partition that holds the records of a table with a sort key
    #[arg(long, global = true, value_name = "TEXT", requires = "sort_key")]
    partition: Option<String>,

    /// The beginning of the partitions, where each record has one of its own
    #[arg(
        long,
        global = true,
        value_name = "TEXT",
        requires = "sort_key",
        conflicts_with = "partition"
    )]
    partition_prefix: Option<String>,
}

/// A store that was reached.
pub(crate) struct Table {
    /// Its name in messages.
    pub(crate) name: String,
    pub(crate) store: Arc<dyn BrowsableStore>,
    /// Only a table in DynamoDB has it.
    pub(crate) dynamodb: Option<DynamoDbTable>,
    clock: ServerClock,
}

/// The access to a table in DynamoDB beside its records.
pub(crate) struct DynamoDbTable {
    pub(crate) names: Attributes,
    pub(crate) client: Client,
}

impl Table {
    /// The time by the table's clock, once it has answered.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Options {
    /// The server, if the store is not in DynamoDB.
    pub(crate) fn server(&self) -> Result<Option<Server>, Failure> {
        let server = self.server.server(self.table.as_deref())?;
        let of_dynamodb = [
            ("--region", self.region.is_some()),
            ("--endpoint-url", self.endpoint_url.is_some()),
            ("--attributes", self.attributes.is_some()),
            ("--sort-key", self.sort_key.is_some()),
        ];
        if let Some(server) = &server {
            servers::refuse(server.kind(), &of_dynamodb)?;
        }
        Ok(server)
    }

    /// The store. Sends no request to a table in DynamoDB, which may have an index.
    pub(crate) async fn connect(
        &self,
        index: Option<&str>,
        changes: bool,
    ) -> Result<Table, Failure> {
        if let Some(server) = self.server()? {
            servers::refuse(server.kind(), &[("--index", index.is_some())])?;
            let name = server.name();
            let (store, time) = server.connect(changes).await?;
            let clock = ServerClock::of(server.kind());
            clock.learn_time(time);
            return Ok(Table { name, store, dynamodb: None, clock });
        }
        let (name, names, clock) = (self.name()?, self.attributes()?, ServerClock::of("DynamoDB"));
        let client = self.client_with(&clock).await?;
        let mut store = DynamoDbStore::builder(client.clone(), name.clone());
        if let Some(index) = index {
            store = store.index(index);
        }
        let store = store.attributes(names.clone()).attempt_timeout(ATTEMPT).build()?;
        let dynamodb = Some(DynamoDbTable { names, client });
        Ok(Table { name, store: Arc::new(store), dynamodb, clock })
    }

    /// The name of the table in DynamoDB.
    pub(crate) fn name(&self) -> Result<String, Failure> {
        let named = self.server.dynamodb_table()?.or_else(|| self.table.clone());
        let name = match named.filter(|name| !name.is_empty()) {
            Some(name) => Some(name),
            None => variable("IDEMPOTENCY_TABLE")?,
        };
        name.ok_or_else(|| {
            let failure = Failure::from("no table is named");
            failure.remedy("Name it by --table or IDEMPOTENCY_TABLE, or another store by --store.")
        })
    }

    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        self.client_with(&ServerClock::of("DynamoDB")).await
    }

    async fn client_with(&self, clock: &ServerClock) -> Result<Client, Failure> {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(Duration::from_secs(5))
            .operation_attempt_timeout(ATTEMPT)
            .operation_timeout(PATIENCE)
            .build();
        let mut config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .retry_config(RetryConfig::standard())
            .timeout_config(timeouts);
        if let Some(region) = &self.region {
            config = config.region(Region::new(region.clone()));
        }
        if let Some(url) = &self.endpoint_url {
            config = config.endpoint_url(url);
        }
        let config = config.load().await;
        if config.region().is_none() {
            let failure = Failure::from("no AWS Region is configured");
            return Err(failure.remedy("Name it by --region or AWS_REGION."));
        }
        let mut of_client = config::Builder::from(&config).interceptor(clock.clone());
        if let Some(provider) = config.credentials_provider() {
            of_client = of_client.credentials_provider(Found::by(provider).await?);
        }
        Ok(Client::from_conf(of_client.build()))
    }

    pub(crate) fn attributes(&self) -> Result<Attributes, Failure> {
        let mut names = Attributes::default();
        let mut places = [
            ("id", &mut names.id),
            ("status", &mut names.status),
            ("expiration", &mut names.expiration),
            ("in_progress_expiration", &mut names.in_progress_expiration),
            ("data", &mut names.data),
            ("validation", &mut names.validation),
            ("owner", &mut names.owner),
            ("last_owner", &mut names.last_owner),
            ("failed_attempts", &mut names.failed_attempts),
            ("lost_attempts", &mut names.lost_attempts),
            ("consecutive_losses", &mut names.consecutive_losses),
            ("fence", &mut names.fence),
            ("error", &mut names.error),
            ("application", &mut names.application),
            ("provenance", &mut names.provenance),
            ("steps", &mut names.steps),
            ("outbox", &mut names.outbox),
            ("payload", &mut names.payload),
            ("unfinished", &mut names.unfinished),
        ];
        for (attribute, name) in self.renamed()? {
            let Some((_, place)) = places.iter_mut().find(|(known, _)| *known == attribute) else {
                let known = places.map(|(known, _)| known).join(", ");
                return Err(Failure::from(format!("items have no attribute `{attribute}`"))
                    .remedy(format!("The attributes are {known}.")));
            };
            **place = name.into();
        }
        names.sort_key = match (&self.sort_key, &self.partition, &self.partition_prefix) {
            (None, ..) => None,
            (Some(name), Some(partition), _) => Some(SortKey::new(name.clone(), partition.clone())),
            (Some(name), None, Some(prefix)) => {
                Some(SortKey::derived(name.clone(), prefix.clone()))
            }
            (Some(_), None, None) => {
                let what = "--sort-key alone does not say in which partition records are";
                return Err(Failure::from(what).remedy(
                    "Add --partition, or --partition-prefix where each record has one of its own.",
                ));
            }
        };
        Ok(names)
    }

    /// The attributes that have other names.
    fn renamed(&self) -> Result<BTreeMap<String, String>, Failure> {
        let Some(path) = &self.attributes else { return Ok(BTreeMap::new()) };
        let read = serde_json::from_str(&terminal::read(path)?);
        read.map_err(|error| {
            let failure = Failure::from(format!("it is not an object of names: {error}"));
            failure
                .in_file(path)
                .remedy("Write attributes and their names, such as {\"expiration\":\"ttl\"}.")
        })
    }
}

fn url(text: &str) -> Result<String, String> {
    let host = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
    match host {
        Some(host) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err("must begin with http:// or https://".to_owned()),
    }
}

/// How long the search may take: a role of an instance that is not there is looked for on the network.
const SEARCH: Duration = Duration::from_secs(10);

/// Provides first what was found already, so that a program that asks for a code is not called twice.
#[derive(Debug)]
pub(crate) struct Found {
    first: Mutex<Option<Credentials>>,
    provider: SharedCredentialsProvider,
}

impl Found {
    pub(crate) async fn by(provider: SharedCredentialsProvider) -> Result<Self, Failure> {
        let found = tokio::time::timeout(SEARCH, provider.provide_credentials()).await;
        let first = match found {
            Ok(Ok(credentials)) => credentials,
            Ok(Err(error)) => return Err(Failure::from(error).remedy(REMEDY)),
            Err(_) => {
                let text = format!("no AWS credentials were found within {} s", SEARCH.as_secs());
                return Err(Failure::from(text).remedy(REMEDY));
            }
        };
        Ok(Self { first: Mutex::new(Some(first)), provider })
    }
}

impl ProvideCredentials for Found {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        match self.first.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(credentials) => future::ProvideCredentials::ready(Ok(credentials)),
            None => self.provider.provide_credentials(),
        }
    }
}

pub(crate) const REMEDY: &str = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile that has keys or a role. With IAM
  Identity Center (SSO): eval \"$(aws configure export-credentials --format env)\"";

/// Why `operation` on a table failed: DynamoDB refused it, or did not answer.
pub(crate) fn failure<E>(operation: &str, table: &str, error: SdkError<E>) -> Failure
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let what = match &error {
        SdkError::ServiceError(_) => {
            let code = error.code().unwrap_or("an error without a code");
            match error.message() {
                Some(message) => format!("was refused: {code}: {message}"),
                None => format!("was refused: {code}"),
            }
        }
        SdkError::TimeoutError(_) => "was not answered in time".to_owned(),
        SdkError::DispatchFailure(_) => format!("did not reach DynamoDB: {}", deepest(&error)),
        SdkError::ResponseError(_) => {
            format!("was answered with something unreadable: {}", deepest(&error))
        }
        _ => format!("could not be sent: {}", deepest(&error)),
    };
    Failure::from(format!("{operation} on DynamoDB table {table} {what}"))
}

/// The cause that no other error explains.
fn deepest(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
