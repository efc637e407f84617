//! Keeps idempotency records in DynamoDB.
//!
//! ```no_run
//! use lambda_idempotency_dynamodb::DynamoDbStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # #[cfg(feature = "from-env")]
//! let store = DynamoDbStore::from_env().await?; // table: IDEMPOTENCY_TABLE
//! # Ok(())
//! # }
//! ```
//!
//! # The table
//!
//! A partition key `id` (S), no sort key, on-demand capacity, and time-to-live on `expiration`:
//!
//! ```yaml
//! IdempotencyTable:
//!   Type: AWS::DynamoDB::Table
//!   Properties:
//!     AttributeDefinitions: [{ AttributeName: id, AttributeType: S }]
//!     KeySchema: [{ AttributeName: id, KeyType: HASH }]
//!     BillingMode: PAY_PER_REQUEST
//!     TimeToLiveSpecification: { AttributeName: expiration, Enabled: true }
//! ```
//!
//! Time-to-live only sweeps, within days. Whether a record still counts is decided by comparing
//! its `expiration`, so an expired item that is still there harms nobody.
//!
//! # Permissions
//!
//! `dynamodb:GetItem`, `BatchGetItem`, `PutItem`, `DeleteItem`, `PartiQLInsert`, `PartiQLUpdate`
//! and `PartiQLDelete` on the table. The last three are not in any policy template of AWS SAM;
//! [`DynamoDbStoreBuilder::without_partiql`] does without them.
//!
//! # How it writes
//!
//! * **One write** is a `PutItem` or `DeleteItem` whose condition names everything that must be
//!   there. Whoever loses is answered with the item that is, by the same request.
//! * **Several writes** go up to 25 in one `BatchExecuteStatement`, each with a verdict of its own;
//!   one consistent `BatchGetItem` reads what the losers lost to.
//! * **A lost answer** (a timeout, a broken connection, a server error) is resolved, not guessed:
//!   the write is sent again, and if it then meets what it was to write itself, token and all, it
//!   was applied the first time.
//! * **Throttled** requests and members are sent again, with pauses that double from 25 ms to
//!   400 ms, until the deadline of the call.
//!
//! A write in a batch leaves attributes alone that are none of [`Attributes`]; a single one removes
//! them. Do not keep anything of your own in these items.
//!
//! # What is logged
//!
//! Nothing of a key or a record, at any level. The AWS SDK writes whole requests and responses at the
//! level `TRACE`, so the store keeps it silent; [`DynamoDbStoreBuilder::with_sdk_logs`] lets it speak. That holds
//! for requests of the store: where a function uses the SDK itself, filter its lines
//! (`aws_smithy_runtime=warn,aws_sdk_dynamodb=warn`).
//!
//! # Sharing a table with Powertools
//!
//! Names and meanings of the attributes are those of [Powertools for AWS Lambda][powertools]
//! (Python, TypeScript, Java, .NET), and its items are read whatever form their `data` has. Its
//! completions and deletions are unconditional, though: they can overwrite a record of ours.
//! A `FAILED` record makes it raise an error.
//!
//! # Another client
//!
//! [`DynamoDbStore::new`] takes a client of your own: another region, endpoint, HTTP client. Give
//! it a connect timeout of about a second. Its retries are turned off, whatever they were.
//!
//! ```
//! use std::time::Duration;
//!
//! use aws_sdk_dynamodb::config::{BehaviorVersion, Region};
//! use lambda_idempotency_dynamodb::{Attributes, DynamoDbStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = aws_sdk_dynamodb::Config::builder()
//!     .behavior_version(BehaviorVersion::v2026_01_12())
//!     .region(Region::new("eu-west-1"))
//!     .build();
//! let client = aws_sdk_dynamodb::Client::from_conf(config);
//! let mut names = Attributes::default();
//! names.expiration = "ttl".into();
//! let store = DynamoDbStore::builder(client, "orders-idempotency")
//!     .attributes(names)
//!     .attempt_timeout(Duration::from_millis(500))
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! * `from-env` (default): [`DynamoDbStore::from_env`], with `aws-config`.
//! * `default-https-client` (default): the SDK's HTTPS client. Without it, bring one in the client.
//!
//! [powertools]: https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/

mod attributes;
mod batch;
mod builder;
mod config;
mod config_error;
mod data;
#[cfg(feature = "from-env")]
mod env;
mod error;
mod guard;
mod item;
mod limits;
mod member;
mod read;
mod retry;
mod single;
mod store;
mod write;

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Store, StoreError, Verdict, Write},
};

pub use crate::{
    attributes::{Attributes, DataForm, SortKey},
    builder::DynamoDbStoreBuilder,
    config_error::DynamoDbConfigError,
    store::DynamoDbStore,
};
use crate::{error::Failure, retry::Budget};

impl Store for DynamoDbStore {
    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(self.write_all(writes, call_deadline))
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            let budget = Budget::new(&self.config, call_deadline);
            let answers = self.read_all(keys.iter(), &budget).await;
            let missing = || Err(Failure::too_late(&self.config));
            let answer = |key| answers.get(key).cloned().unwrap_or_else(missing);
            keys.iter().map(|key| answer(key).map_err(|f| f.report(false))).collect()
        })
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
