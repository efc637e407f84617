//! Deadlines that Lambda cannot mean, as local tools send them, count as unknown.

use std::time::Duration;

use lambda_idempotency::{Call, Failure, source::Sqs};
use lambda_idempotency_core::clock::{Clock as _, Timestamp};
use lambda_runtime::Context;
use serde_json::{Value, json};

use crate::{
    secrecy::capture::Captured,
    support::{Noted, World, batch, in_child, order, place, serve},
};

const LONGEST: Duration = Duration::from_mins(15);

/// In milliseconds: the length that `cargo lambda watch` sends, seconds, and the year 2072.
const IMPOSSIBLE: [u64; 3] = [600_000, 1_700_000_030, 3_218_000_000_000];

fn context(deadline: u64) -> Context {
    let mut context = Context::default();
    context.request_id = "request-1".to_owned();
    context.deadline = deadline;
    context
}

/// Whether a handler with this deadline has the time of a call without one, and no more.
fn is_of_an_unknown(handler_deadline: Option<Timestamp>, world: &World) -> bool {
    let left = handler_deadline.unwrap().since(world.clock.now());
    left > LONGEST - Duration::from_mins(1) && left <= LONGEST
}

/// An emulator sends the time of the invocation as its deadline: it would start nothing, at each delivery.
#[tokio::test]
async fn a_function_runs_its_handlers_under_a_deadline_that_lambda_cannot_mean() {
    let now = World::new().clock.now().as_millis();
    for deadline in IMPOSSIBLE.into_iter().chain([0, 1, 60_000].map(|late| now - late)) {
        let (world, ends) = (World::new(), Noted::new());
        let handler = ends.handler(|_: Value, call: Call| call.handler_deadline());
        let function = world.with_handler(Sqs::new(), &place(), handler);
        let event = batch([order("m-1", "a", "")]).to_string();
        let answer = world.clock.drive(serve(function, &event, context(deadline))).await.unwrap();
        assert_eq!(answer.get(), r#"{"batchItemFailures":[]}"#);
        let ends = ends.take();
        assert!(ends.len() == 1 && is_of_an_unknown(ends[0], &world), "{deadline}: {ends:?}");
    }
}

#[tokio::test]
async fn so_do_run_and_run_many() {
    for deadline in IMPOSSIBLE {
        let world = World::new();
        let (idempotency, operation, context) = (world.idempotency(), place(), context(deadline));
        let (id, ids) = (json!({"id": "a"}), [json!({"id": "b"}), json!({"id": "c"})]);
        let work = async |call: Call| {
            assert!(is_of_an_unknown(call.handler_deadline(), &world), "{deadline}");
            Ok::<_, Failure>(17)
        };
        let run = idempotency.run(&operation, &id, &context, work);
        assert_eq!(world.clock.drive(run).await.unwrap().result, 17);
        let each = async |_: Value, call: Call| work(call).await;
        let many = idempotency.run_many(&operation, ids, &context, each);
        for run in world.clock.drive(many).await {
            assert_eq!(run.unwrap().result, 17);
        }
    }
}

/// Managed Instances report a timeout and let the invocation go on: its end may be past then.
#[tokio::test]
async fn a_call_of_run_after_the_end_of_its_invocation_does_not_begin() {
    let world = World::new();
    let operation = place();
    let ended = world.clock.now().minus(Duration::from_mins(10)).as_millis();
    let (idempotency, context, id) = (world.idempotency(), context(ended), json!({"id": "a"}));
    let run = idempotency.run(&operation, &id, &context, async |_: Call| Ok::<_, Failure>(17));
    assert!(world.clock.drive(run).await.is_err());
}

#[test]
fn the_log_says_it_once() {
    in_child("deadlines::in_a_child", 1, |_| {});
}

#[tokio::test]
#[ignore = "needs a process of its own"]
async fn in_a_child() {
    let (world, captured) = (World::instant(), Captured::default());
    let function = world.on(Sqs::new(), &place());
    let guard = captured.start();
    for (deadline, id) in IMPOSSIBLE.into_iter().zip(["a", "b", "c"]) {
        serve(function.clone(), &batch([order("m-1", id, "")]).to_string(), context(deadline))
            .await
            .unwrap();
    }
    drop(guard);
    let text = captured.text();
    assert_eq!(text.matches("is one that Lambda cannot mean").count(), 1, "{text}");
    assert!(text.contains("deadline=600000") && text.contains("WARN"), "{text}");
}
