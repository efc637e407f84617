//! Makes AWS Lambda handlers safe to call twice: each record of an event is processed once for its idempotency key, and
//! every later delivery is answered from its idempotency record.
//!
//! ```no_run
//! use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
//!
//! #[derive(serde::Deserialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Order {
//!     order_id: String,
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), lambda_runtime::Error> {
//!     lambda_runtime::tracing::init_default_subscriber(); // a line for each record
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?); // IDEMPOTENCY_TABLE
//!     let place = Operation::new("place-order").key("orderId"); // JMESPath on the message's body
//!     idempotency.on(Sqs::new(), &place, place_order)?.serve().await
//! }
//!
//! /// Runs once for each `orderId`. After an error, the next delivery of the message runs it again.
//! async fn place_order(order: Order, call: Call) -> Result<(), Failure> {
//!     println!("placing {}", order.order_id);
//!     Ok(())
//! }
//! ```
//!
//! A [`source`] says which records are taken, and how they are read; an [`Operation`] names the work and its key; the
//! handler is an async function of the decoded payload and a [`Call`]. [`Failure::permanent`] says that another attempt is
//! useless. The template has to set `FunctionResponseTypes: [ReportBatchItemFailures]` for SQS and streams.
//!
//! # A handler that holds a client
//!
//! is a closure, which is cloned for each record:
//!
//! ```no_run
//! use aws_sdk_dynamodb::{Client, types::AttributeValue};
//! # use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
//! # #[derive(serde::Deserialize)]
//! # struct Order { id: String }
//!
//! async fn place_order(client: &Client, order: Order, call: Call) -> Result<(), Failure> {
//!     client.put_item().table_name("orders").item("id", AttributeValue::S(order.id)).send().await?;
//!     Ok(())
//! }
//!
//! # async fn function() -> Result<(), Box<dyn std::error::Error>> {
//! # let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//! # let place = Operation::new("place-order").key("id");
//! # let config = aws_sdk_dynamodb::Config::builder().behavior_version_latest().build();
//! # let client = Client::from_conf(config);
//! // let client = Client::new(&aws_config::load_from_env().await);
//! let handler = async move |order, call| place_order(&client, order, call).await;
//! let function = idempotency.on(Sqs::new(), &place, handler)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Two sources of one operation
//!
//! What was done for one source is not done again for the other. A source whose payloads have the key at another place
//! has a path of its own:
//!
//! ```
//! use lambda_idempotency::source::{EventBridge, Sqs};
//! # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
//! # async fn place_order(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//!
//! let place = Operation::new("place-order").key("orderId");
//! let queue = Sqs::new().queue("orders");
//! let bus = EventBridge::new().detail_type("OrderRequested").key("order.id");
//! let function = idempotency.on((queue, bus), &place, place_order)?;
//! # Ok(())
//! # }
//! ```
//!
//! Other work of the function has its own operation and handler: [`Idempotency::function`].
//!
//! # An HTTP route
//!
//! With the feature `http`, a layer answers a repeated request with the first response. The header `Idempotency-Key` is
//! the key, or a field of the body (`Http::by_body()`, with the operation's `.key("..")`):
//!
//! ```no_run
//! use lambda_http::{Request, service_fn, tower::ServiceBuilder};
//! use lambda_idempotency::{DynamoDbStore, Idempotency, Operation, http::Http};
//!
//! async fn charge(request: Request) -> Result<String, std::io::Error> {
//!     Ok("charged".to_owned()) // the handler's `Call`: `request.extensions().get::<Call>()`
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), lambda_http::Error> {
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//!     let charges = idempotency.http(&Operation::new("charges"), Http::by_header())?;
//!     lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
//! }
//! ```
//!
//! The same layer goes around one axum route: `Router::new().route("/charges", post(charge).layer(charges))`. Keys belong
//! to a caller; [HTTP](guide::sources::http) says how callers are told apart.
//!
//! # A transaction
//!
//! Effects in the database of the idempotency records happen exactly once: the handler collects them, and they are
//! committed together with the completion of the key.
//!
//! ```no_run
//! use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};
//! use lambda_idempotency::{Call, CallExt as _, Failure, Mode, Operation};
//! # use lambda_idempotency::{DynamoDbStore, Idempotency, source::Sqs};
//!
//! #[derive(serde::Deserialize)]
//! struct Deposit { account: String, cents: u32 }
//!
//! async fn deposit(deposit: Deposit, call: Call) -> Result<(), Failure> {
//!     let add = Update::builder()
//!         .table_name("accounts")
//!         .key("id", AttributeValue::S(deposit.account))
//!         .update_expression("ADD cents :cents")
//!         .expression_attribute_values(":cents", AttributeValue::N(deposit.cents.to_string()))
//!         .build()?;
//!     call.transact(TransactWriteItem::builder().update(add).build())?;
//!     Ok(())
//! }
//!
//! # async fn function() -> Result<(), Box<dyn std::error::Error>> {
//! # let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//! let deposits = Operation::new("deposit").key("depositId").mode(Mode::Transactional);
//! let function = idempotency.on(Sqs::new(), &deposits, deposit)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Table of contents
//!
//! | for | use |
//! |---|---|
//! | a function of event sources | [`Idempotency::on`], [`Idempotency::function`], the types of [`source`] |
//! | what is done once, and how | [`Operation`], [`Mode`] |
//! | what a handler is told | [`Call`], [`CallExt`] |
//! | errors that say what to do | [`Failure`] |
//! | a direct invocation, whose caller gets the result | [`source::Invoke`] |
//! | any function, many payloads | [`Idempotency::run`], [`Idempotency::run_many`] |
//! | keys before sending, and of events | [`keys::producer`], [`keys::inspect`] |
//! | tests | [`testing`], [`Call::test`], [`MemoryStore`] |
//!
//! The guide:
//!
//! | to | read |
//! |---|---|
//! | put it into a function | [quick start](guide::quick_start), [keys](guide::keys), [event sources](guide::sources), [settings](guide::settings), [testing](guide::testing) |
//! | know what it does | [concepts](guide::concepts), [choosing a mode](guide::choosing_a_mode), [failure modes](guide::failure_modes) |
//! | have effects once, too | [transactions](guide::choosing_a_mode#transactional-mode), [steps](guide::steps), [outbox](guide::outbox), [recovery](guide::recovery), [durable functions](guide::durable_functions) |
//! | choose a store | [stores](guide::stores), [a store of your own](guide::own_store) |
//! | operate it | [logs and traces](guide::logs_and_traces), [metrics](guide::metrics), [troubleshooting](guide::troubleshooting), [the table](guide::operating), [security](guide::security), [cost](guide::cost), [performance](guide::performance) |
//! | move to it, or within it | [from Powertools](guide::powertools), [moving work](guide::migrations), [producers](guide::producers), [topologies](guide::topologies), [where it runs](guide::where_it_runs) |
//!
//! Programs to copy are in the [examples]: `first_use`, `client`, `several_sources`, `fifo`, `stream`, `http`, `invoke`, `run`,
//! `custom_store`, `test_a_handler`, `producer`, `transaction`, `steps`, `outbox`, `long_job`, `typed_events`, and `sources`,
//! which has one event of each source.
//!
//! [examples]: https://github.com/lambda-idempotency/lambda-idempotency/tree/main/crates/lambda/examples
//!
//! # What is promised
//!
//! A record is processed once, unless a worker dies or is stopped between an effect and its completion. Then the effect may
//! happen again, and [`Call::lost_attempts`] tells the next call so. Effects of a [transactional](Mode::Transactional)
//! operation happen exactly once. A duplicate that comes after the retention (24 hours by default) is processed again. A
//! delivery is acknowledged only if its key is completed, or its handler succeeded and that could not be recorded (an error in
//! the log says so), or your sink has it, or a policy that you named says so.
//!
//! # What is logged
//!
//! [`TracingObserver`](observe::TracingObserver) writes one line for each delivery, with the target
//! `lambda_idempotency::record`: its outcome, and the problem if the record returns to its source. **It needs a `tracing`
//! subscriber**; without one, a lost completion goes unnoticed. No line contains a payload, a raw key, a result, or an
//! error's message, which may quote the payload. [Logs and traces](guide::logs_and_traces) says more.
//!
//! # Cargo features
//!
//! * `dynamodb` (default): [`DynamoDbStore`], with `from_env()` and the SDK's HTTPS client.
//! * `postgres`, `redis`: `PostgresStore`, `RedisStore`; see [stores](guide::stores).
//! * `http`: `Idempotency::http`, a layer around a service of HTTP requests, with `lambda_http`.
//! * `metrics`: `observe::CloudWatchMetrics`, an observer that writes [metrics](guide::metrics) in CloudWatch's embedded
//!   metric format.
//! * `powertools`: `keys::powertools`, the keys of Powertools for AWS Lambda, for a table shared with it.
//! * `panic-abort`: allows builds with `panic = "abort"`, in which a panic ends the process and every handler of the batch.
//!
//! # Panics of handlers
//!
//! A panic in a handler fails only its own record. This requires panics that unwind, but `cargo lambda build` and `sam build`
//! choose `panic = "abort"` for every manifest that does not set `panic`. Add these two lines to the `Cargo.toml` at the root
//! of your workspace; without them a release build stops:
//!
//! ```toml
//! [profile.release]
//! panic = "unwind"
//! ```

mod call;
mod deadline;
mod decode;
mod divert;
mod envelope;
mod environment;
pub mod error;
mod find_key;
mod function;
mod function_builder;
mod guarded;
pub mod guide;
pub mod handler;
#[cfg(feature = "http")]
pub mod http;
mod idempotency;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod operation;
pub mod outbox;
pub mod recovery;
mod rejection;
mod route;
pub mod source;
pub mod store;
pub mod testing;

pub use crate::{
    call::CallExt,
    error::{ConfigError, RunError},
    function::Function,
    function_builder::FunctionBuilder,
    idempotency::{Idempotency, run::Run, run_context::RunContext},
    operation::Operation,
};
pub use lambda_idempotency_core::{
    failure::Failure, memory::MemoryStore, outcome::Outcome, policy::Mode,
};
#[cfg(feature = "dynamodb")]
pub use lambda_idempotency_dynamodb::DynamoDbStore;
pub use lambda_idempotency_engine::call::Call;
#[cfg(feature = "postgres")]
pub use lambda_idempotency_postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use lambda_idempotency_redis::RedisStore;

/// Time: the [`Clock`](clock::Clock) that is read, and its [`Timestamp`](clock::Timestamp)s.
pub mod clock {
    pub use lambda_idempotency_core::clock::{Clock, SystemClock, Timestamp};
}

/// Keys: where they are, how they are written, those of [producers](keys::producer) and those of [events](keys::inspect).
///
/// [`Operation::key`] takes a text; the types here are for what a text cannot say.
pub mod keys {
    pub mod inspect;

    #[cfg(feature = "powertools")]
    pub use lambda_idempotency_keys::powertools;
    pub use lambda_idempotency_keys::{
        IntoKeyPath, IntoPayloadPath, Key, KeyFormat, KeyPath, PayloadPath, RecordPath, Secret,
        SecretError, View, payload, producer, record,
    };
}

/// What is reported: the outcome of each delivery, each call of the store, and the end of each invocation; and what some
/// [outcomes](Outcome) hold.
///
/// An [`Observer`](observe::Observer) of your own is added with [`Idempotency::with_observer`].
pub mod observe {
    pub use lambda_idempotency_core::{
        admission::Freed,
        outcome::{Completion, Foreign, NotStarted, Rejected, ResultKept},
    };
    pub use lambda_idempotency_engine::observe::{
        BatchEnd, Observer, Report, StoreCall, StorePurpose, TracingObserver,
    };

    #[cfg(feature = "metrics")]
    pub use crate::metrics::CloudWatchMetrics;
}

/// What an [`Operation`] does where a delivery is not processed, beside its [`Mode`].
pub mod policy {
    pub use lambda_idempotency_core::policy::{Lease, OnConflict, OnOutage, OnTimeout};

    pub use crate::operation::OnMissingKey;
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme_of_the_repository {}
