//! Counts the instructions of keys and of whole functions over the store in memory, in Valgrind, and fails if one takes
//! more than its limit, which is a tenth above what it took when the limit was set:
//!
//! ```console
//! $ bash tests/run counts
//! ```
//!
//! Counts do not depend on the machine's load. They say nothing of caches, system calls and waiting.
#![allow(
    missing_docs,
    clippy::expect_used,
    reason = "it measures; what it sets up is known to be valid"
)]

use std::{convert::Infallible, hint::black_box, time::Duration};

use gungraun::{Callgrind, EventKind, prelude::*};
use lambda_idempotency::{Call, Idempotency, MemoryStore, Operation, source::Sqs};
use lambda_idempotency_core::clock::{BoxFuture, Clock, Timestamp};
use lambda_idempotency_keys::{Document, Expression, FieldSet, KeyFormat, Scope};
use lambda_idempotency_measured::batch;
use lambda_runtime::{Context, LambdaEvent};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service as _;

fn at_most(instructions: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::default();
    callgrind.hard_limits([(EventKind::Ir, instructions)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

const BODY: &str = r#"{"tenant":"acme","order":{"id":"o-2026-000042","lines":[{"sku":"A-100","quantity":2,"price":19.95},{"sku":"B-7","quantity":1,"price":5.5}]},"amount":45.4,"currency":"EUR","note":"leave at the door"}"#;

fn compiled(text: &str) -> Expression {
    Expression::compile(text).expect("it is valid")
}

// From the text of a record to its key.
#[library_benchmark(setup = compiled)]
#[bench::one_field(args = ("order.id"), config = at_most(26_500))]
#[bench::two_fields(args = ("[tenant, order.id]"), config = at_most(34_500))]
#[bench::whole_payload(args = ("@"), config = at_most(67_500))]
fn key(expression: Expression) {
    let fields = FieldSet::of(std::slice::from_ref(&expression));
    let document = Document::read(black_box(BODY), &fields).expect("it is JSON");
    let selection = expression.select(&document).expect("it has them");
    let scope = Scope { operation: "place-order", tenant: None };
    black_box(KeyFormat::Hashed.key(&scope, &selection));
}

/// Valgrind is slow: with a clock that goes on, handlers would seem to take long.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_800_000_000)
    }

    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "orderId")]
    _id: String,
}

async fn nothing(_: Order, _: Call) -> Result<(), Infallible> {
    Ok(())
}

type Function = Box<dyn FnMut(&str)>;

/// The README's function over the store in memory, after its first invocation, and an event.
fn function(size: usize, is_duplicate: bool) -> (Function, String) {
    let event =
        |first: usize| batch((first..first + size).map(|n| format!("o-{n:06}"))).to_string();
    let operation = Operation::new("place-order").key("orderId");
    let idempotency = Idempotency::new(MemoryStore::new()).with_clock(Still);
    let mut service =
        idempotency.on(Sqs::new(), &operation, nothing).expect("it can work as it is");
    let runtime: Runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let mut function: Function = Box::new(move |event: &str| {
        let event: Box<RawValue> = serde_json::from_str(event).expect("it is JSON");
        let mut context = Context::default();
        context.request_id = "8476a536-e9f4-11e8-9739-2dfe598c3fcd".to_owned();
        let response = runtime.block_on(service.call(LambdaEvent::new(event, context)));
        assert_eq!(response.expect("nothing fails").get(), r#"{"batchItemFailures":[]}"#);
    });
    function(&event(0));
    (function, event(if is_duplicate { 0 } else { size }))
}

// From an event of SQS to the response, but for the runtime's connection.
#[library_benchmark(setup = function)]
#[bench::one_new(args = (1, false), config = at_most(167_000))]
#[bench::ten_new(args = (10, false), config = at_most(1_313_000))]
#[bench::hundred_new(args = (100, false), config = at_most(12_770_000))]
#[bench::hundred_duplicates(args = (100, true), config = at_most(10_360_000))]
fn invocation((mut function, event): (Function, String)) -> Function {
    function(&event);
    function
}

library_benchmark_group!(name = instructions, benchmarks = [key, invocation]);
main!(library_benchmark_groups = instructions);
