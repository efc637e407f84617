//! Runs a real, separately compiled Lambda function on this machine: no AWS account, no Docker.
//!
//! A [`Local`] imitates the three services around a function:
//!
//! - **Lambda**: the [Runtime API] on a loopback port, and the function's binary as a child process that talks to it.
//!   A process that misses its deadline is killed with `SIGKILL`, a crashed one is replaced, and there may be several
//!   at once ([`LocalBuilder::sandboxes`]), so that two deliveries can race.
//! - **The source**: an SQS queue, a stream, a topic's partitions, SNS, EventBridge, a pipe, a client of HTTP, ...,
//!   which redelivers as in AWS, up to the dead-letter queue ([`Local::deliver`]).
//! - **DynamoDB**: embedded, in memory, behind a proxy that counts requests and capacity units ([`Usage`]) and
//!   injects faults ([`Fault`]).
//!
//! ```no_run
//! use lambda_idempotency_local::{FunctionConfig, Local, Table};
//! # async fn example() -> Result<(), lambda_idempotency_local::Error> {
//! let local = Local::builder(FunctionConfig::new("target/debug/orders").env("IDEMPOTENCY_TABLE", "idempotency"))
//!     .table(Table::new("idempotency", "id").ttl("expiration"))
//!     .start()
//!     .await?;
//! let report = local.deliver(r#"{"Records":[{"eventSource":"aws:sqs","messageId":"m1","body":"{}"}]}"#).await?;
//! assert!(report.dead_letters.is_empty());
//! println!("{} DynamoDB requests", local.dynamodb().usage().requests());
//! local.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! Time is the real clock, because the function is a real process. Every delay can be shortened ([`SqsConfig`],
//! [`LocalBuilder::retry_delays`], [`FunctionConfig::timeout`]). Dropping a `Local` kills the function's processes and aborts all
//! tasks that it started.
//!
//! [Runtime API]: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
// This crate imitates AWS services, so it reads the real clock and runs servers, each aborted when dropped.
#![allow(clippy::disallowed_methods)]

mod build;
mod dynamodb;
mod error;
mod function;
mod http;
mod local;
mod source;

pub use build::Build;
pub use dynamodb::{
    Apply, DynamoDb, Fault, FaultId, Faults, Gate, ItemAnswer, ItemRequest, Proxy, StoreRequest,
    Table, Usage, Verb,
};
pub use error::Error;
pub use function::{
    AtOnce, EffectLine, FunctionConfig, InFlight, Invocation, InvocationResult, Outcome,
    OutputLine, RecordLine, Signal,
};
pub use local::{Local, LocalBuilder};
pub use source::{
    AsyncEvents, Batch, DeadLetter, DeliveryReport, Disposition, Event, InvocationReport, Poller,
    Queue, RecordReport, Shards, Source, SqsConfig, StreamConfig, parse_event,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
