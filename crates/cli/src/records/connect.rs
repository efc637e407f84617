//! Which table, and how it is reached.

use std::{borrow::Cow, time::Duration};

use aws_config::{BehaviorVersion, Region, retry::RetryConfig, timeout::TimeoutConfig};
use aws_sdk_dynamodb::Client;
use clap::Args;
use lambda_idempotency_core::clock::{Clock as _, SystemClock, Timestamp};
use lambda_idempotency_dynamodb::{Attributes, DynamoDbStore, SortKey};

use crate::failure::Failure;

/// How long one call may take.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Args)]
pub(crate) struct Options {
    /// The table [default: the environment variable IDEMPOTENCY_TABLE]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) table: Option<String>,

    /// The Region [default: as the AWS SDK finds it]
    #[arg(long, global = true, value_name = "NAME")]
    region: Option<String>,

    /// Another endpoint than that of AWS, such as of a local DynamoDB
    #[arg(long, global = true, value_name = "URL")]
    endpoint_url: Option<String>,

    /// An attribute of another name, where a Powertools table has one; may be repeated: `expiration=ttl`
    #[arg(long, global = true, value_name = "ATTRIBUTE=NAME", value_parser = attribute)]
    attribute: Vec<(String, String)>,

    /// The attribute of the sort key, for a table that also holds other items
    #[arg(long, global = true, value_name = "NAME", requires = "partition")]
    sort_key: Option<String>,

    /// The partition that holds the records of a table with a sort key
    #[arg(long, global = true, value_name = "TEXT", requires = "sort_key")]
    partition: Option<String>,
}

/// A table that was reached.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) store: DynamoDbStore,
    pub(crate) client: Client,
}

impl Table {
    /// When a call that begins now has to have ended.
    pub(crate) fn deadline() -> Timestamp {
        SystemClock.now().plus(PATIENCE)
    }
}

impl Options {
    /// The table, as a store. Sends no request to it.
    pub(crate) async fn connect(&self) -> Result<Table, Failure> {
        let (name, client) = (self.name()?, self.client().await?);
        let store = DynamoDbStore::builder(client.clone(), name.clone());
        // At a terminal a slow connection is not a lost one.
        let store = store.attributes(self.attributes()?).attempt_timeout(Duration::from_secs(10));
        Ok(Table { name, store: store.build()?, client })
    }

    /// The table's name.
    pub(crate) fn name(&self) -> Result<String, Failure> {
        let variable = || std::env::var("IDEMPOTENCY_TABLE").ok();
        let name = self.table.clone().or_else(variable).filter(|name| !name.is_empty());
        name.ok_or_else(|| {
            Failure::from("no table is named").remedy("Name it by --table or IDEMPOTENCY_TABLE.")
        })
    }

    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let timeouts = TimeoutConfig::builder().connect_timeout(Duration::from_secs(5)).build();
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
        Ok(Client::new(&config))
    }

    /// The names of the attributes.
    pub(crate) fn attributes(&self) -> Result<Attributes, Failure> {
        let mut names = Attributes::default();
        for (attribute, name) in &self.attribute {
            let place: &mut Cow<'static, str> = match attribute.as_str() {
                "id" => &mut names.id,
                "status" => &mut names.status,
                "expiration" => &mut names.expiration,
                "in_progress_expiration" => &mut names.in_progress_expiration,
                "data" => &mut names.data,
                "validation" => &mut names.validation,
                "owner" => &mut names.owner,
                "last_owner" => &mut names.last_owner,
                "failed_attempts" => &mut names.failed_attempts,
                "lost_attempts" => &mut names.lost_attempts,
                "consecutive_losses" => &mut names.consecutive_losses,
                "fence" => &mut names.fence,
                "error" => &mut names.error,
                "application" => &mut names.application,
                "provenance" => &mut names.provenance,
                other => {
                    let failure = Failure::from(format!("items have no attribute `{other}`"));
                    return Err(failure.remedy(
                        "The attributes are id, status, expiration, in_progress_expiration, data, validation, owner, \
                         last_owner, failed_attempts, lost_attempts, consecutive_losses, fence, error, application, provenance.",
                    ));
                }
            };
            *place = name.clone().into();
        }
        if let (Some(name), Some(partition)) = (&self.sort_key, &self.partition) {
            names.sort_key = Some(SortKey::new(name.clone(), partition.clone()));
        }
        Ok(names)
    }
}

fn attribute(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((attribute, name)) if !name.is_empty() => Ok((attribute.to_owned(), name.to_owned())),
        _ => Err("must be ATTRIBUTE=NAME, such as expiration=ttl".to_owned()),
    }
}
