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
//! # What it can do
//!
//! | | |
//! |---|---|
//! | [Effects](lambda_idempotency_core::effects), committed with the completion | yes: [`DynamoDbEffects`], items of the same account and Region |
//! | Messages of an [outbox](lambda_idempotency_core::outbox), stored with the completion | yes, in the record |
//! | The server removes expired records | yes, within days after they expire |
//! | [Listing records](lambda_idempotency_core::browse::Browse) | yes, by `Scan`, or `Query` where all are in one partition; what relays and recoveries look for, by [an index](DynamoDbStoreBuilder::index) |
//! | Writes of a call | a request of up to 25, each write by itself |
//! | A guard is compared | by the server, as the condition of the write |
//! | Reads see the latest write | yes |
//! | The largest record | 400 KB |
//! | The time that decides | the worker's, by its [`clock`](DynamoDbStoreBuilder::clock); the server's for the removal |
//! | A write that was confirmed survives the loss of a server | yes |
//! | A failover means | nothing within a Region; global tables with eventual consistency let two Regions win one claim |
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
//! A table with a partition key and a sort key, which holds other items as well, needs [`Attributes::sort_key`]: the
//! records are in one partition ([`SortKey::new`]), or each in a partition of its own ([`SortKey::derived`]).
//!
//! Time-to-live only deletes expired items, within days. Whether a record is still valid is decided
//! by comparing its `expiration`, so an expired item that still exists has no effect.
//!
//! # Permissions
//!
//! `dynamodb:GetItem`, `BatchGetItem`, `PutItem`, `UpdateItem`, `DeleteItem`, `PartiQLInsert`, `PartiQLUpdate`
//! and `PartiQLDelete` on the table. The last three are not in any policy template of AWS SAM. They are not needed with
//! [`DynamoDbStoreBuilder::without_partiql`], nor for a table that is named by its ARN.
//!
//! # How it writes
//!
//! * **One write** is a `PutItem` or `DeleteItem` with its guard as the condition. If the condition
//!   fails, the response contains the stored item.
//! * **A settlement, a renewal, a step, or a mark that messages are sent** is by itself an `UpdateItem`, and among
//!   several a statement, of the attributes that it changes. The rest of the item stays as it is stored.
//! * **Several writes** are sent in a `BatchExecuteStatement`, up to 25 in each, and each write has
//!   its own verdict. A consistent `BatchGetItem` then reads the items of the writes whose guard
//!   failed.
//! * **Calls at the same time**, by concurrent invocations or many calls of `run`, have 12 requests on their way at a time,
//!   and the others wait for these. There may be more connections for a moment, while they are being opened. Two of the 12 are kept for completions, renewals and the
//!   results of steps, which also go before claims and reads.
//! * **A write with [effects](DynamoDbEffects)** is a `TransactWriteItems` of its own, with the record first.
//!   Up to ten of a call are sent at once. It needs `UpdateItem` on this table, and on the tables of the
//!   effects `PutItem`, `UpdateItem`, `DeleteItem` or `ConditionCheckItem`, as if they were sent alone.
//! * **A lost response** (a timeout, a broken connection, a server error): the write is sent again.
//!   If it then finds the record that it was to write, with its own token, the first request was
//!   applied.
//! * **Throttled** requests and members are sent again, with pauses that double from 25 ms to
//!   400 ms, until the deadline of the call.
//! * **Without credentials for now** (the role's endpoint does not answer), or **with a wrong clock**
//!   (the SDK signs the next request with the server's time): in the same way. Credentials that
//!   DynamoDB refuses, and a missing configuration, are reported at once.
//!
//! A claim, completion or release by itself removes attributes that are not in [`Attributes`]; other writes keep them. Do not
//! add your own attributes to these items.
//!
//! # What is logged
//!
//! The store logs no keys and no content of records or effects, at any level. The AWS SDK logs whole requests
//! and responses at the level `TRACE`, so the store silences it for its own requests;
//! [`DynamoDbStoreBuilder::with_sdk_logs`] turns these logs on. If your function uses the SDK
//! itself, filter its log lines (`aws_smithy_runtime=warn,aws_sdk_dynamodb=warn`).
//!
//! # Sharing a table with Powertools
//!
//! The attributes have the names and meanings of [Powertools for AWS Lambda][powertools] (Python,
//! TypeScript, Java, .NET), and its items are read in every form of their `data`. Powertools
//! completes and deletes without conditions, so it can overwrite a record of this library. It
//! raises an error for a `FAILED` record.
//!
//! # Certificates
//!
//! Connections of [`DynamoDbStore::from_env`] are those of the SDK: they trust the root certificates of the system or, in
//! place of all these, those in the file that `SSL_CERT_FILE` and the directory that `SSL_CERT_DIR` names. The SDK reads them
//! while the function starts. A client with a trust store of its own (`aws-smithy-http-client` with the feature
//! `rustls-aws-lc`) reads only that, for example Amazon's five roots, which sign DynamoDB's certificates:
//!
//! ```no_run
//! use aws_config::BehaviorVersion;
//! use aws_smithy_http_client::{
//!     Builder,
//!     tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
//! };
//! use lambda_idempotency_dynamodb::DynamoDbStore;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let roots = std::fs::read("roots.pem")?; // https://www.amazontrust.com/repository/
//! let trusted = TrustStore::empty().with_pem_certificate(roots);
//! let https = Builder::new()
//!     .tls_provider(Provider::Rustls(CryptoMode::AwsLc))
//!     .tls_context(TlsContext::builder().with_trust_store(trusted).build()?)
//!     .build_https();
//! let config = aws_config::defaults(BehaviorVersion::v2026_01_12()).http_client(https).load().await;
//! let store = DynamoDbStore::new(aws_sdk_dynamodb::Client::new(&config), "orders-idempotency");
//! # Ok(())
//! # }
//! ```
//!
//! # Another client
//!
//! [`DynamoDbStore::new`] takes your own client, for another region, endpoint or HTTP client. Set
//! its connect timeout to about a second. Its retries are always turned off.
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
//! * `default-https-client` (default): the SDK's HTTPS client. Without it, set one in your client.
//!
//! [powertools]: https://docs.aws.amazon.com/powertools/python/latest/utilities/idempotency/

mod attributes;
mod batch;
mod browse;
mod builder;
mod config;
mod connection;
mod effects;
mod error;
mod guard;
mod index;
mod item;
mod limits;
mod read;
mod store;
mod transaction;
mod value;
mod write;

/// One effect, of the version of the AWS SDK that the store uses.
#[doc(no_inline)]
pub use aws_sdk_dynamodb::types::TransactWriteItem;

pub use crate::{
    attributes::{Attributes, DataForm, Partition, SortKey},
    builder::DynamoDbStoreBuilder,
    config::DynamoDbConfigError,
    effects::{DynamoDbEffectError, DynamoDbEffects},
    store::DynamoDbStore,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
