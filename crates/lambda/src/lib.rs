//! Makes AWS Lambda handlers safe to call twice: each record of an event is processed once for its idempotency key, and
//! every later delivery is answered from its idempotency record.
//!
//! ```no_run
//! use std::time::Duration;
//!
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
//!     lambda_runtime::tracing::init_default_subscriber(); // logs what fails, and batches of several
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?); // IDEMPOTENCY_TABLE
//!     let place = Operation::new("place-order")
//!         .key("orderId") // JMESPath on the message's body
//!         .retention(Duration::from_hours(24 * 18)); // as long as the queues can keep a message; default: 24 hours
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
//! handler is an async function of the decoded payload and a [`Call`]. A payload that is a `String` is the text as it was sent,
//! with its quotes; any other type is read from JSON. [`Failure::permanent`] says that another attempt is useless. The template
//! has to set `FunctionResponseTypes: [ReportBatchItemFailures]` for SQS and streams.
//!
//! # On your machine
//!
//! The [command line](guide::testing#the-real-binary) delivers events to your function as AWS would, with an embedded DynamoDB:
//!
//! ```console
//! $ lambda-idempotency invoke --sqs-body order.json --repeat 2        # `executed`, then `replayed`
//! $ lambda-idempotency event http --path /charges --body @charge.json >request.json
//! $ lambda-idempotency invoke request.json --repeat 2                 # the first response, then the same again
//! ```
//!
//! # A handler that holds a client
//!
//! is a closure, which is cloned for each record; a client that is not `Clone` is put into an `Arc`, and state that it changes
//! into an `Arc<Mutex<_>>`:
//!
//! ```no_run
//! use aws_config::BehaviorVersion;
//! use aws_sdk_dynamodb::{Client, types::AttributeValue};
//! # use lambda_idempotency::{Call, DynamoDbStore, Failure, Idempotency, Operation, source::Sqs};
//! # #[derive(serde::Deserialize)]
//! # #[serde(rename_all = "camelCase")]
//! # struct Order { order_id: String }
//!
//! async fn place_order(client: &Client, order: Order, call: Call) -> Result<(), Failure> {
//!     let id = AttributeValue::S(order.order_id);
//!     client.put_item().table_name("orders").item("orderId", id).send().await?;
//!     Ok(())
//! }
//!
//! # async fn function() -> Result<(), Box<dyn std::error::Error>> {
//! # let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//! # let place = Operation::new("place-order").key("orderId");
//! let client = Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await);
//! let handler = async move |order, call| place_order(&client, order, call).await;
//! let function = idempotency.on(Sqs::new(), &place, handler)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Two sources of one operation
//!
//! Work that was done for one source is not done again for the other. A key reads the payload: the body (SQS, HTTP), the message
//! (SNS), the `detail` (EventBridge), the data (Kinesis), the input (Scheduler). A source whose payloads have the key at another
//! place has a path of its own:
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
//! Other work of the function has its own operation and handler:
//!
//! ```
//! # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, source::{EventBridge, Sqs}};
//! # async fn place_order(order: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # async fn send_mail(mail: serde_json::Value, call: Call) -> Result<(), std::io::Error> { Ok(()) }
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! let place = Operation::new("place-order").key("orderId");
//! let mail = Operation::new("send-mail").key("[orderId, template]");
//! let function = idempotency
//!     .function()
//!     .on(Sqs::new().queue("orders"), &place, place_order)
//!     .on(EventBridge::new().detail_type("MailRequested"), &mail, send_mail)
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! Any error is tried again at the next delivery; a [`Failure::permanent`] is not. A type of your own that says which it is
//! converts to [`Failure`], and does not implement `std::error::Error`:
//!
//! ```
//! # use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, source::Sqs};
//! # async fn reserve(item: &str) -> Result<u32, std::io::Error> { Ok(0) }
//! enum OrderError {
//!     OutOfStock,
//!     Unreachable(std::io::Error),
//! }
//!
//! impl From<OrderError> for Failure {
//!     fn from(error: OrderError) -> Self {
//!         match error {
//!             OrderError::OutOfStock => Failure::permanent("out of stock"),
//!             OrderError::Unreachable(error) => Failure::transient(error),
//!         }
//!     }
//! }
//!
//! async fn place_order(item: String, call: Call) -> Result<(), OrderError> {
//!     let reserved = reserve(&item).await.map_err(OrderError::Unreachable)?;
//!     if reserved == 0 { Err(OrderError::OutOfStock) } else { Ok(()) }
//! }
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! # let function = idempotency.on(Sqs::new(), &Operation::new("place-order"), place_order)?;
//! # Ok(())
//! # }
//! ```
//!
//! A type that implements it converts already, so the compiler refuses a second `From` (E0119). Map it where the handler is
//! given:
//!
//! ```
//! # use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, source::Sqs};
//! #[derive(Debug, thiserror::Error)]
//! enum OrderError {
//!     #[error("out of stock")]
//!     OutOfStock,
//!     #[error("the warehouse does not answer")]
//!     Unreachable(#[from] std::io::Error),
//! }
//!
//! impl OrderError {
//!     fn into_failure(self) -> Failure {
//!         if matches!(self, OrderError::OutOfStock) { Failure::permanent(self) } else { self.into() }
//!     }
//! }
//!
//! async fn place_order(item: String, call: Call) -> Result<(), OrderError> {
//!     Err(OrderError::OutOfStock)
//! }
//!
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! # let place = Operation::new("place-order");
//! let handler = async |item, call| place_order(item, call).await.map_err(OrderError::into_failure);
//! let function = idempotency.on(Sqs::new(), &place, handler)?;
//! # Ok(())
//! # }
//! ```
//!
//! # A sink
//!
//! gets the records that will never be processed: those that cannot be read, and those that failed permanently. A record
//! is acknowledged after the sink has returned `Ok`; without a sink it returns to its source, and blocks a stream. A sink holds
//! a client as a handler does:
//!
//! ```
//! use lambda_idempotency::{Failure, source::{DivertedRecord, Kinesis}};
//! # #[derive(Clone)] struct Client;
//! # impl Client {
//! #     async fn send(&self, queue: &str, id: &str, body: &str) -> Result<(), std::io::Error> { Ok(()) }
//! # }
//! # use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation};
//! # async fn place_order(order: serde_json::Value, call: Call) -> Result<(), Failure> { Ok(()) }
//!
//! async fn to_review(client: &Client, record: DivertedRecord) -> Result<(), Failure> {
//!     // May be called again, with the same id.
//!     client.send("orders-to-review", &record.id, &record.raw).await?;
//!     Ok(())
//! }
//!
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! # let (place, client) = (Operation::new("place-order").key("orderId"), Client);
//! let sink = async move |record| to_review(&client, record).await;
//! let function = idempotency.on(Kinesis::new().divert(sink), &place, place_order)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Results
//!
//! The caller of a direct invocation ([`source::Invoke`]) gets the handler's result, and a duplicate gets the same. Other
//! sources drop it, unless [`handler::keep_result`] keeps it in the store:
//!
//! ```
//! use lambda_idempotency::{handler::keep_result, source::Sqs};
//! # use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation};
//! # use serde_json::json;
//!
//! async fn place_order(order: serde_json::Value, call: Call) -> Result<String, Failure> {
//!     Ok("receipt-17".to_owned())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! let place = Operation::new("place-order").key("orderId");
//! let function = idempotency.on(Sqs::new(), &place, keep_result(place_order))?;
//! // Later, by a payload with the same key:
//! let receipt: Option<String> = idempotency.kept_result(&place, &json!({ "orderId": "o-1" })).await?;
//! # assert_eq!(receipt, None);
//! # Ok(())
//! # }
//! ```
//!
//! The crate [lambda-idempotency-results], a store around the store, keeps large results elsewhere, in a `ResultStore` of yours
//! such as a bucket of S3 ([an example](https://github.com/lambda-idempotency/lambda-idempotency/tree/main/docs/examples/s3-results)):
//!
//! ```
//! use lambda_idempotency_results::{MemoryResults, Results};
//! # use lambda_idempotency::{Idempotency, MemoryStore};
//! # let (store, bucket) = (MemoryStore::new(), MemoryResults::default());
//!
//! let idempotency = Idempotency::new(Results::new(store).offload_above(100_000, bucket)); // bytes
//! ```
//!
//! The name of a result has a `/`, as keys of S3 may. If it cannot be put there, the work still counts as done, and duplicates get
//! [`RunError::ResultLost`].
//!
//! # A function of your own
//!
//! [`Idempotency::run`] does for one call what a source does for a record, also outside of Lambda;
//! [`run_many`](Idempotency::run_many) does it for a list, with few requests. (`lambda_runtime::run` is another function: it
//! serves a [`Function`], as `.serve()` does.)
//!
//! ```
//! # use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, RunContext, RunError};
//! # use serde_json::json;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), RunError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! let charge = Operation::new("charge").key("paymentId");
//! let payments = ["p-1", "p-2", "p-1"].map(|id| json!({ "paymentId": id }));
//!
//! // In a handler of `lambda_runtime`, `&event.context`. A function of yours takes `&RunContext<'_>`:
//! // `&RunContext::from(&event.context)`.
//! let context = RunContext::without_deadline();
//! let one = idempotency.run(&charge, &payments[0], &context, async |_| Ok::<_, Failure>(5)).await?;
//! assert_eq!((one.result, one.replayed), (5, false));
//!
//! let charged = async |_payment, _call| Ok::<_, Failure>(7);
//! for run in idempotency.run_many(&charge, payments, &context, charged).await {
//!     println!("{}", run?.result); // 5, 7, 5
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # A key that is used again
//!
//! An order was cancelled, and may be placed again. **Let the number of the attempt be a part of the key**, `[orderId, attempt]`,
//! where its producer has one. Otherwise [`Idempotency::free`] makes the key new, with limits:
//!
//! * For up to 60 seconds, other processes still answer the new order from memory, and it is not placed. The function that
//!   places avoids that with [`.with_cache(Cache::off())`](Idempotency::with_cache).
//! * A late duplicate of the old order is placed, and a second cancellation after a new order frees the new one.
//! * A payment service that was given [`Call::subkey`] answers with the first payment, and consumers of messages see copies.
//!
//! The cancellation is an operation of its own, with a key that each cancellation has alone (by `orderId`, the second would be
//! a duplicate). If another function places, [its application](Idempotency::application) is set here:
//!
//! ```
//! use lambda_idempotency::observe::Freed;
//! # use lambda_idempotency::{Call, Failure, Idempotency, MemoryStore, Operation, source::EventBridge};
//! #[derive(serde::Deserialize, serde::Serialize)]
//! #[serde(rename_all = "camelCase")]
//! struct Cancelled { order_id: String, cancellation_id: String }
//!
//! # fn main() -> Result<(), lambda_idempotency::ConfigError> {
//! # let idempotency = Idempotency::new(MemoryStore::new());
//! # let place = Operation::new("place-order").key("orderId");
//! let cancel = Operation::new("cancel-order").key("cancellationId");
//! let (orders, placed) = (idempotency.clone(), place.clone()); // the operation of the other handler
//! let handler = async move |cancelled: Cancelled, call: Call| match orders.free(&placed, &cancelled).await? {
//!     // An earlier attempt may have freed it.
//!     Freed::WasFree if call.failed_attempts() + call.lost_attempts() == 0 => {
//!         Err(Failure::permanent("this order was not placed"))
//!     }
//!     _ => Ok(()),
//! };
//! let source = EventBridge::new().detail_type("OrderCancelled");
//! let function = idempotency.on(source, &cancel, handler)?;
//! # Ok(())
//! # }
//! ```
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
//!     lambda_http::tracing::init_default_subscriber(); // logs what fails
//!     let idempotency = Idempotency::new(DynamoDbStore::from_env().await?);
//!     let charges = idempotency.http(&Operation::new("charges"), Http::by_header())?;
//!     lambda_http::run(ServiceBuilder::new().layer(charges).service(service_fn(charge))).await
//! }
//! ```
//!
//! | no key | caller not known | key busy: the first request is in progress | key used with another request | not finished in time |
//! |---|---|---|---|---|
//! | 400 | 403 | 409 | 422 | 504 |
//!
//! The same layer goes around one axum route: `Router::new().route("/charges", post(charge).layer(charges))`. Keys belong
//! to a caller; [HTTP](guide::sources::http) says how callers are told apart. With `lambda-idempotency invoke`, the same header
//! with another body shows the 422, a handler slower than `--timeout 1` the 504, then the 409, and a request whose header
//! `idempotency-key` or `authorization` you delete the 400 or the 403.
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
//! In PostgreSQL, effects are statements. A violated constraint fails the attempt, which is tried again:
//!
//! ```
//! # #[cfg(feature = "postgres")] mod postgres {
//! # use lambda_idempotency::{Call, Failure};
//! # struct Deposit { account: String, cents: i64 }
//! use lambda_idempotency::{CallExt as _, store::postgres::PostgresStatement};
//!
//! async fn deposit(deposit: Deposit, call: Call) -> Result<(), Failure> {
//!     let add = PostgresStatement::new("UPDATE accounts SET cents = cents + $1 WHERE id = $2");
//!     call.execute(add.bind(deposit.cents).bind(deposit.account).expect_rows(1))?;
//!     Ok(())
//! }
//! # }
//! ```
//!
//! # PostgreSQL and Redis
//!
//! have features of their own (`"postgres"`, `"redis"`), and no AWS SDK:
//!
//! ```toml
//! lambda-idempotency = { git = "https://github.com/lambda-idempotency/lambda-idempotency", default-features = false, features = ["postgres"] }
//! ```
//!
//! The environment names the server; a function loads the password of each connection. For a server without one it is
//! [`Idempotency::from_env`]`().await?`.
//!
//! ```no_run
//! # use lambda_idempotency::Idempotency;
//! # async fn secret(name: &str) -> Result<String, std::io::Error> { Ok(String::new()) }
//! async fn password() -> Result<String, std::io::Error> {
//!     secret("orders/idempotency").await // from AWS Secrets Manager
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), lambda_runtime::Error> {
//! // IDEMPOTENCY_STORE=postgres://orders@db.example.com/orders, or rediss://orders@cache.example.com
//! let idempotency = Idempotency::from_env_with_password(password).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The table in PostgreSQL is made when you deploy: `store.migrate(SystemClock.now().plus(Duration::from_secs(60))).await?`, with
//! [`clock::Clock`] and [`clock::SystemClock`]. Redis has no transactional mode. [Stores](guide::stores) compares what each can
//! promise.
//!
//! # Table of contents
//!
//! | for | use |
//! |---|---|
//! | a function of event sources | [`Idempotency::on`], [`Idempotency::function`], the types of [`source`] |
//! | what is done once, and how | [`Operation`], [`Mode`], [`policy`] |
//! | what a handler is told | [`Call`], [`CallExt`] |
//! | errors that say what to do | [`Failure`], [errors](#errors) |
//! | records that can never be processed | [`divert`](source::Sqs::divert), [a sink](#a-sink) |
//! | results | [`source::Invoke`], [`handler::keep_result`], [results](#results) |
//! | any function, many payloads | [`Idempotency::run`], [`Idempotency::run_many`] |
//! | work that is done again | [`Idempotency::free`] |
//! | keys before sending, and of events | [`keys::producer`], [`keys::inspect`] |
//! | another store | [`DynamoDbStore`], [`PostgresStore`], [`RedisStore`], one [of your own](store) |
//! | results that are large or secret | the crate [lambda-idempotency-results] |
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
//! [lambda-idempotency-results]: https://github.com/lambda-idempotency/lambda-idempotency/tree/main/crates/results
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
//! [`TracingObserver`](observe::TracingObserver) writes a line of each delivery that has a problem, with the
//! target `lambda_idempotency::record`, and counts the outcomes of a batch; the lines of successes are `DEBUG`. **It needs a `tracing`
//! subscriber**; without one, a lost completion goes unnoticed. No line contains a payload, a raw key, a result, or an
//! error's message, which may quote the payload (`IDEMPOTENCY_LOG_ERROR_MESSAGES=1` adds it, as `lambda-idempotency invoke`
//! does). [Logs and traces](guide::logs_and_traces) says more.
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
mod decode;
mod divert;
mod envelope;
mod environment;
pub mod error;
mod find_key;
mod function;
mod function_builder;
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

/// Reports: the outcome of each delivery, each call of the store, and the end of each invocation; and what some
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

/// Policies: how an [`Operation`] goes on where a delivery is not processed, beside its [`Mode`].
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
