//! Makes AWS Lambda handlers safe to call twice: each record of an event is processed once for its idempotency key, and
//! every later delivery is answered from its idempotency record.
//!
//! ```no_run
//! use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation};
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
//!     let place = Operation::new("place-order").key("orderId"); // JMESPath on the payload
//!     lambda_runtime::run(idempotency.sqs(place, place_order)?).await
//! }
//!
//! async fn place_order(order: Order, call: Call) -> Result<(), Failure> {
//!     // once per orderId
//!     Ok(())
//! }
//! ```
//!
//! # The guide
//!
//! | to | read |
//! |---|---|
//! | put it into a function | [quick start](guide::quick_start), [keys](guide::keys), [event sources](guide::sources), [settings](guide::settings), [testing](guide::testing) |
//! | know what it does | [concepts](guide::concepts), [choosing a mode](guide::choosing_a_mode), [failure modes](guide::failure_modes) |
//! | have effects once, too | [transactions](guide::choosing_a_mode#transactional-mode), [steps](guide::steps), [outbox](guide::outbox), [recovery](guide::recovery), [durable functions](guide::durable_functions) |
//! | choose a store | [stores](guide::stores), [a store of your own](guide::own_store) |
//! | operate it | [logs and traces](guide::logs_and_traces), [metrics](guide::metrics), [troubleshooting](guide::troubleshooting), [the table](guide::operating), [security](guide::security), [cost](guide::cost), [performance](guide::performance), [at scale](guide::at_scale) |
//! | move to it, or within it | [from Powertools](guide::powertools), [moving work](guide::migrations), [producers](guide::producers), [topologies](guide::topologies), [where it runs](guide::where_it_runs) |
//!
//! Programs to copy are in the [examples]: `first_use`, `several_sources`, `fifo`, `stream`, `http`, `whole_event`, `run`,
//! `custom_store`, `test_a_handler`, `producer`, `transaction`, `steps`, `outbox`, `long_job`, `typed_events`, and `sources`,
//! which has one event of each source.
//!
//! # Where to begin in this crate
//!
//! | for | use |
//! |---|---|
//! | a source | a method of [`Idempotency`], such as [`sqs`](Idempotency::sqs); several in one function: [`Idempotency::function`] |
//! | a whole event, any function | [`Idempotency::event`], [`Idempotency::run`] |
//! | what is processed, and how | [`Operation`] |
//! | what a handler is told | [`Call`], [`CallExt`] |
//! | errors that say what to do | [`Failure`] |
//! | keys before sending, and of events | [`producer`], [`inspect`] |
//! | tests | [`testing`], [`Call::test`], [`MemoryStore`] |
//!
//! [examples]: https://github.com/lambda-idempotency/lambda-idempotency/tree/main/crates/lambda/examples
//!
//! # What is promised
//!
//! A record is processed once, unless a worker dies or is stopped between an effect and its completion. Then the effect may
//! happen again, and [`Call::lost_attempts`] tells the next call so. Effects of a [transactional](Operation::transactional)
//! operation happen exactly once. A duplicate that comes after the retention (24 hours by default) is processed again. A
//! delivery is acknowledged only if its key is completed, or its handler succeeded and that could not be recorded (an error in
//! the log says so), or your sink has it, or a policy that you named says so.
//!
//! # What is logged
//!
//! [`TracingObserver`] writes one line for each delivery, with the target `lambda_idempotency::record`: its outcome, and the
//! problem if the record returns to its source. **It needs a `tracing` subscriber**; without one, a lost completion goes
//! unnoticed. No line contains a payload, a raw key, a result, or an error's message, which may quote the payload
//! ([`TracingObserver::showing_error_messages`] shows them). [Logs and traces](guide::logs_and_traces) says more.
//!
//! # Cargo features
//!
//! * `dynamodb` (default): [`DynamoDbStore`], with `from_env()` and the SDK's HTTPS client.
//! * `postgres`, `redis`: `PostgresStore`, `RedisStore`; see [stores](guide::stores).
//! * `http`: `Idempotency::http`, a layer around a service of HTTP requests, with `lambda_http`.
//! * `metrics`: `CloudWatchMetrics`, an observer that writes [metrics](guide::metrics) in CloudWatch's embedded metric format.
//! * `powertools`: `PowertoolsKeys`, the keys of Powertools for AWS Lambda, for a table shared with it.
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

mod any_function;
mod application;
mod call;
pub mod clock;
mod decode;
mod disabled;
mod environment;
pub mod error;
mod event;
mod find_key;
mod free;
mod from_env;
mod function;
mod function_builder;
pub mod guide;
pub mod handler;
#[cfg(feature = "http")]
pub mod http;
mod idempotency;
pub mod inspect;
pub mod keys;
pub mod layers;
mod log;
#[cfg(feature = "metrics")]
mod metrics;
mod names;
mod nested;
pub mod observe;
mod operation;
pub mod outbox;
pub mod outcome;
pub mod recovery;
mod rejection;
mod route;
mod run;
mod run_context;
mod run_many;
pub mod source;
pub mod store;
pub mod testing;

pub use crate::{
    call::CallExt,
    error::{ConfigError, RunError},
    function::Function,
    function_builder::FunctionBuilder,
    handler::keep_result,
    idempotency::Idempotency,
    operation::{OnMissingKey, Operation},
    run::Run,
    run_context::RunContext,
};
pub use lambda_idempotency_core::{
    failure::Failure,
    memory::MemoryStore,
    outcome::Outcome,
    policy::{Lease, Mode, OnConflict, OnOutage, OnTimeout},
};
#[cfg(feature = "dynamodb")]
pub use lambda_idempotency_dynamodb::{self as dynamodb, DynamoDbStore};
pub use lambda_idempotency_engine::call::Call;
pub use lambda_idempotency_keys::{payload, producer, record};
#[cfg(feature = "postgres")]
pub use lambda_idempotency_postgres::{self as postgres, PostgresStore};
#[cfg(feature = "powertools")]
pub use lambda_idempotency_powertools as powertools;
#[cfg(feature = "redis")]
pub use lambda_idempotency_redis::{self as redis, RedisStore};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
mod readme_of_the_repository {}
