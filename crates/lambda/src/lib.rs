//! Makes AWS Lambda handlers safe to call twice.
//!
//! Lambda delivers events at least once. Wrap the handler, say where the idempotency key is in each
//! record, and each record is processed once: its key is claimed in a store by one conditional
//! write, the handler runs, the key is completed, and later deliveries are answered from its idempotency record.
//!
//! ```no_run
//! use lambda_idempotency::{Call, DynamoDbStore, Idempotency, Operation};
//! # #[derive(serde::Deserialize)] #[serde(rename_all = "camelCase")] struct Order { order_id: String }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), lambda_runtime::Error> {
//!     lambda_runtime::tracing::init_default_subscriber(); // a line for each record
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?); // IDEMPOTENCY_TABLE
//!     let place = Operation::new("place-order").key("orderId"); // JMESPath on the payload
//!     lambda_runtime::run(idempotency.sqs(place, place_order)?).await
//! }
//!
//! async fn place_order(order: Order, call: Call) -> Result<(), std::io::Error> {
//!     /* once per orderId */
//!     Ok(())
//! }
//! ```
//!
//! | for | use |
//! |---|---|
//! | a queue, topic or bus | [`sqs`](Idempotency::sqs), [`sns`](Idempotency::sns), [`event_bridge`](Idempotency::event_bridge), [`active_mq`](Idempotency::active_mq), [`rabbit_mq`](Idempotency::rabbit_mq) |
//! | a stream | [`kinesis`](Idempotency::kinesis), [`dynamodb_stream`](Idempotency::dynamodb_stream), [`document_db`](Idempotency::document_db), [`kafka`](Idempotency::kafka) |
//! | another source | [`s3`](Idempotency::s3), [`scheduler`](Idempotency::scheduler), [`pipe`](Idempotency::pipe), [`invoke`](Idempotency::invoke) |
//! | several sources in one function | [`Idempotency::function`] |
//! | the same work from several sources | [`FunctionBuilder::sources`] |
//! | a whole event, with the first result for every duplicate | [`Idempotency::event`] |
//! | any function | [`Idempotency::run`] |
//! | to compute keys and deduplication ids before sending | [`producer`] |
//! | to see an event's records and keys | [`inspect`] |
//! | the record around the payload, attributes, headers, Lambda's context | [`Call::record_as`], [`Call::attribute`], [`CallExt::context`] |
//! | the trace in which a record was sent | [`Call::trace_context`] |
//! | effects in DynamoDB or PostgreSQL that happen exactly once | [`Operation::transactional`], [`CallExt::transact`] |
//! | a part of a handler that runs once over all attempts | [`Call::step`] |
//! | to put aside records that will never be processed | [`Operation::divert`] |
//! | to keep the results of records | [`keep_result`], [`Idempotency::kept_result`] |
//! | how to do each of these | [`guide`] |
//! | to test a handler, or a whole function | [`Call::test`], [`testing`] |
//! | a store of your own | [`store`] |
//! | complete programs to copy | the [examples]: `first_use`, `several_sources`, `fifo`, `stream`, `http`, `whole_event`, `run`, `custom_store`, `test_a_handler`, `producer`, `transaction`, `steps`, `outbox`, `long_job`, `typed_events`; `sources` has one event of each source |
//!
//! [examples]: https://github.com/lambda-idempotency/lambda-idempotency/tree/main/crates/lambda/examples
//!
//! # What is promised
//!
//! A record is processed once, unless a worker dies or is stopped between an effect and its
//! completion. Then the effect may happen again, and [`Call::lost_attempts`] tells the next call
//! so. Effects of a [transactional](Operation::transactional) operation happen exactly once: they are
//! committed together with their completion, or not at all. A duplicate that comes after the retention (24 hours by default) is processed again. A
//! delivery is acknowledged only if its key is completed, or its handler succeeded and that could
//! not be recorded (an error in the log says so), or your sink has it, or a policy that you named
//! says so.
//!
//! # What is logged
//!
//! [`TracingObserver`] writes one line for each delivery, with the target
//! `lambda_idempotency::record`: its outcome, and the problem if the record returns to its source.
//! **It needs a `tracing` subscriber**; without one, a lost completion goes unnoticed.
//! [`Idempotency::without_log`] switches it off; [`Idempotency::with_observer`] adds an observer of
//! your own, for example for metrics. The line contains no payload, raw key or
//! result, and only the type of an error, because an error's message may quote the payload. To log
//! messages, log them in the handler or use [`TracingObserver::showing_error_messages`]. Local runs
//! (`lambda-idempotency invoke`) show them.
//!
//! Each call of a handler runs in a span of its own, so that the lines of concurrent handlers can be
//! told apart: [logs and traces](guide::logs_and_traces).
//!
//! # Words
//!
//! Names, messages and logs use one word for each thing: see the
//! [glossary](https://github.com/lambda-idempotency/lambda-idempotency/blob/main/docs/glossary.md).
//!
//! # Cargo features
//!
//! * `dynamodb` (default): [`DynamoDbStore`], with `from_env()` and the SDK's HTTPS client.
//! * `http`: `Idempotency::http`, a layer around a service of HTTP requests, with `lambda_http`.
//! * `metrics`: `CloudWatchMetrics`, an observer that writes metrics in CloudWatch's embedded metric
//!   format; see [the guide](guide::metrics).
//! * `postgres`: `PostgresStore`, which keeps idempotency records in PostgreSQL; see
//!   [the guide](guide::stores).
//! * `powertools`: `PowertoolsKeys`, which makes the keys of Powertools for AWS Lambda, for a table
//!   shared with it.
//! * `redis`: `RedisStore`, which keeps idempotency records in Redis or Valkey; see
//!   [the guide](guide::stores).
//! * `panic-abort`: allows builds with `panic = "abort"`. A panic then ends the process and every
//!   handler of the batch. Work that had its effect but was not yet completed is done twice.
//!
//! # Panics of handlers
//!
//! A panic in a handler fails only its own record. This requires panics that unwind, but `cargo
//! lambda build` and `sam build` choose `panic = "abort"` for every manifest that does not set
//! `panic`. Add these two lines to the `Cargo.toml` at the root of your workspace; without them a
//! release build does not compile:
//!
//! ```toml
//! [profile.release]
//! panic = "unwind"
//! ```

mod any_function;
mod application;
mod bad_record;
mod busy;
mod call;
pub mod clock;
mod decode;
mod disabled;
mod divert;
mod envelope;
mod environment;
pub mod error;
mod event;
mod find_key;
mod from_env;
mod function;
mod function_builder;
pub mod guide;
mod handler;
#[cfg(feature = "http")]
pub mod http;
mod idempotency;
pub mod inspect;
mod keep_order;
mod layers;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod nested;
mod on_missing_key;
mod operation;
pub mod outbox;
pub mod outcome;
mod recovery;
mod rejection;
mod routes;
mod run;
mod run_many;
mod source;
mod sources;
pub mod store;
pub mod testing;
pub mod wrappers;

#[cfg(feature = "metrics")]
pub use crate::metrics::CloudWatchMetrics;
pub use crate::{
    bad_record::{BadRecord, OnBadRecord},
    busy::BusyRecord,
    call::CallExt,
    divert::{DivertedRecord, Sink},
    envelope::Envelope,
    error::{ConfigError, InvocationError, RunError},
    event::EventLayer,
    function::Function,
    function_builder::FunctionBuilder,
    handler::{Handler, HandlerResult, keep_result},
    idempotency::Idempotency,
    keep_order::KeepOrder,
    on_missing_key::OnMissingKey,
    operation::Operation,
    recovery::{Recovered, Recovery},
    rejection::Rejection,
    run::{Run, RunContext},
    sources::Sources,
};
pub use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    failure::Failure,
    memory::MemoryStore,
    outcome::{DivertReason, NotStarted, Outcome, ResultKept},
    policy::{Lease, OnConflict, OnFailure, OnOutage, OnPermanentFailure, OnTimeout},
    store::{Store, StoreError},
};
#[cfg(feature = "dynamodb")]
pub use lambda_idempotency_dynamodb::{self as dynamodb, DynamoDbStore};
pub use lambda_idempotency_engine::{
    batch::AfterFailure,
    call::{Call, RecordId, TraceContext},
    delivered::RecordError,
    observe::{BatchEnd, Observer, Report, StoreCall, StorePurpose, TracingObserver},
    process::Cache,
};
pub use lambda_idempotency_keys::{Functions, KeyFormat, KeyPath, payload, producer, record};
#[cfg(feature = "postgres")]
pub use lambda_idempotency_postgres::{self as postgres, PostgresStore};
#[cfg(feature = "powertools")]
pub use lambda_idempotency_powertools::{self as powertools, PowertoolsKeys};
#[cfg(feature = "redis")]
pub use lambda_idempotency_redis::{self as redis, RedisStore};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme_of_the_repository {}
