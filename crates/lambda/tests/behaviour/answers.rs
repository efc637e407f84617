//! What the caller of a direct invocation gets: the handler's result, also for duplicates, or an error that says why not.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lambda_idempotency::{
    Call, Failure, Function, Operation,
    handler::Handler,
    policy::OnMissingKey,
    source::{Invoke, Sqs},
};
use lambda_idempotency_core::clock::Clock as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{Unserializable, World, batch, diagnostic, order, serve};

#[derive(Deserialize)]
struct Payment {
    id: String,
    #[serde(rename = "do")]
    action: Option<String>,
}

#[derive(Serialize)]
struct Receipt {
    id: String,
    number: usize,
}

fn charge() -> Operation {
    Operation::new("charge").key("id")
}

/// Charges, and returns which charge it was; or does what the payment's `do` says.
fn charging(world: &World) -> impl Handler<Payment, Result<Receipt, Failure>> {
    let (ledger, clock) = (world.ledger.clone(), world.clock.clone());
    async move |Payment { id, action }: Payment, _: Call| {
        match action.as_deref() {
            Some("fail") => return Err("s3cr3t".into()),
            Some("give up") => return Err(Failure::permanent("s3cr3t")),
            Some("panic") => panic!("s3cr3t"),
            Some("sleep") => clock.sleep(Duration::from_secs(3)).await,
            Some("hang") => clock.sleep(Duration::from_hours(1)).await,
            _ => {}
        }
        ledger.record(&id, "");
        Ok(Receipt { number: ledger.total(), id })
    }
}

fn function(world: &World) -> Function {
    world.with_handler(Invoke::new(), &charge(), charging(world))
}

async fn kind(world: &World, function: &Function, event: Value) -> String {
    let (kind, text) = diagnostic(world.invoke(function, &event).await.unwrap_err());
    assert!(!text.contains("s3cr3t"), "{text}");
    kind.strip_prefix("Idempotency.").unwrap().to_owned()
}

#[tokio::test]
async fn the_caller_gets_the_result_and_so_does_a_duplicate() {
    let world = World::new();
    let charging = function(&world);
    for (id, number) in [("a", 1), ("a", 1), ("b", 2), ("a", 1)] {
        let answer = world.invoke(&charging, &json!({ "id": id })).await.unwrap();
        assert_eq!(answer, json!({ "id": id, "number": number }));
    }
    let refund = Operation::new("refund").key("id");
    let refunding = world.with_handler(Invoke::new(), &refund, self::charging(&world));
    let answer = world.invoke(&refunding, &json!({ "id": "a" })).await.unwrap();
    assert_eq!(answer["number"], 3, "another operation");
}

#[tokio::test]
async fn a_result_of_work_that_a_queue_delivered_answers_a_direct_invocation() {
    let world = World::new();
    let function = world.with_handler((Sqs::new(), Invoke::new()), &charge(), charging(&world));
    assert!(world.returned(&function, &batch([order("m-1", "a", "")])).await.is_empty());
    let answer = world.invoke(&function, &json!({ "id": "a" })).await.unwrap();
    assert_eq!(answer, json!({ "id": "a", "number": 1 }));
    assert!(world.returned(&function, &batch([order("m-2", "a", "")])).await.is_empty());
    world.ledger.assert_once("a");
}

#[tokio::test]
async fn a_failure_fails_the_invocation_so_that_the_caller_sees_it() {
    let world = World::new();
    let operation = charge().fingerprint("amount");
    let function = world.with_handler(Invoke::new(), &operation, charging(&world));
    let of = |id: &str, action: &str| json!({ "id": id, "amount": 1, "do": action });
    for (event, expected) in [
        (of("a", "fail"), "HandlerFailed"),
        (of("a", "panic"), "HandlerFailed"),
        (of("b", "give up"), "HandlerFailed"),
        (of("b", ""), "PermanentlyFailed"),
        (json!({ "amount": 1 }), "Rejected"),
        (json!({ "id": 7, "amount": 1 }), "Rejected"),
        (json!({ "id": "c" }), "Rejected"),
        (json!("a"), "Rejected"),
        (Value::Null, "Rejected"),
    ] {
        assert_eq!(kind(&world, &function, event.clone()).await, expected, "{event}");
    }
    assert_eq!(
        world.invoke(&function, &of("a", "")).await.unwrap()["number"],
        1,
        "it is free again"
    );
    let another = json!({ "id": "a", "amount": 2 });
    assert_eq!(kind(&world, &function, another).await, "Mismatch");
    assert_eq!(world.ledger.total(), 1);
}

#[tokio::test]
async fn while_the_first_call_runs_a_second_one_waits_for_its_result() {
    let world = World::new();
    let (one, other) = (function(&world), function(&world));
    let event = json!({ "id": "a", "do": "sleep" }).to_string();
    let both = async {
        tokio::join!(serve(one, &event, world.context()), serve(other, &event, world.context()))
    };
    let (first, second) = world.clock.drive(both).await;
    assert_eq!(first.unwrap().get(), second.unwrap().get());
    world.ledger.assert_once("a");
}

/// The first call is stopped at its deadline, and its effect may be on its way.
#[tokio::test]
async fn a_key_that_is_held_too_long_is_an_error_that_says_until_when() {
    let world = World::new();
    let (one, other) = (function(&world), function(&world));
    let event = json!({ "id": "a", "do": "hang" }).to_string();
    let both = async {
        tokio::join!(serve(one, &event, world.context()), serve(other, &event, world.context()))
    };
    let (first, second) = world.clock.drive(both).await;
    let kinds = [first, second].map(|answer| diagnostic(answer.unwrap_err()).0);
    assert_eq!(kinds, ["Idempotency.OutOfTime", "Idempotency.Busy"]);
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn during_an_outage_the_handler_is_not_called() {
    let world = World::new();
    let function = function(&world);
    world.store.outage();
    assert_eq!(kind(&world, &function, json!({ "id": "a" })).await, "Store");
    world.ledger.assert_never("a");
}

#[tokio::test]
async fn a_call_without_a_key_that_runs_unprotected_is_answered_too() {
    let world = World::new();
    let operation = charge().on_missing_key(OnMissingKey::RunUnprotected);
    let handler = async |_: Value, _: Call| Ok::<_, Failure>("done");
    let function = world.with_handler(Invoke::new(), &operation, handler);
    assert_eq!(world.invoke(&function, &json!({})).await.unwrap(), "done");
}

#[tokio::test]
async fn a_result_that_is_no_json_is_an_error_and_the_work_is_not_done_again() {
    for panics in [false, true] {
        let world = World::new();
        let ledger = world.ledger.clone();
        let handler = async move |_: Value, _: Call| {
            ledger.record("a", "");
            Ok::<_, Failure>(Unserializable(panics))
        };
        let function = world.with_handler(Invoke::new(), &charge(), handler);
        for said in ["cannot be serialized", "was not kept"] {
            let answer = world.invoke(&function, &json!({ "id": "a" })).await;
            let (kind, text) = diagnostic(answer.unwrap_err());
            assert_eq!(kind, "Idempotency.ResultLost");
            assert!(text.contains(said) && !text.contains("s3cr3t"), "{text}");
        }
        world.ledger.assert_once("a");
    }
}

fn task(invocation: &str) -> Value {
    json!({
        "invocationSchemaVersion": "1.0", "invocationId": invocation, "job": { "id": "j-1" },
        "tasks": [{ "taskId": "t-1", "s3Key": "a.jpg", "s3VersionId": "1",
                    "s3BucketArn": "arn:aws:s3:::orders" }],
    })
}

/// A handler of S3 Batch Operations that fails temporarily at first.
fn copying(fails: usize) -> impl Handler<Value, Result<Value, Failure>> {
    let attempts = Arc::new(AtomicUsize::new(0));
    async move |event: Value, _: Call| {
        let result = |code| json!({ "taskId": event["tasks"][0]["taskId"], "resultCode": code });
        if attempts.fetch_add(1, Ordering::Relaxed) < fails {
            return Err(Failure::answering("throttled", result("TemporaryFailure")));
        }
        Ok(result("Succeeded"))
    }
}

fn tasks() -> Invoke {
    Invoke::new().key("[job.id, tasks[0].taskId]").answer(
        |result, event| json!({ "invocationId": event["invocationId"], "results": [result] }),
    )
}

#[tokio::test]
async fn each_answer_is_made_from_the_kept_result_and_its_own_event() {
    let world = World::new();
    let function = world.with_handler(tasks(), &Operation::new("copy"), copying(1));
    for (invocation, code) in
        [("i-1", "TemporaryFailure"), ("i-2", "Succeeded"), ("i-3", "Succeeded")]
    {
        let answer = world.invoke(&function, &task(invocation)).await.unwrap();
        let result = json!({ "taskId": "t-1", "resultCode": code });
        assert_eq!(answer, json!({ "invocationId": invocation, "results": [result] }));
    }
}

/// A failure that is final has no answer that asks for another attempt.
#[tokio::test]
async fn a_failure_with_an_answer_counts_as_a_failed_attempt() {
    let world = World::new();
    let operation = Operation::new("copy").max_failed_attempts(2);
    let function = world.with_handler(tasks(), &operation, copying(9));
    let answer = world.invoke(&function, &task("i-1")).await.unwrap();
    assert_eq!(answer["results"][0]["resultCode"], "TemporaryFailure");
    assert_eq!(kind(&world, &function, task("i-2")).await, "HandlerFailed");
    assert_eq!(kind(&world, &function, task("i-3")).await, "PermanentlyFailed");
    let queue = Sqs::new().key("id");
    let function = world.with_handler(queue, &Operation::new("other"), copying(1));
    assert_eq!(world.returned(&function, &batch([order("m-1", "a", "")])).await, ["m-1"]);
}

#[tokio::test]
async fn an_answer_that_cannot_be_made_is_an_error_and_the_work_is_not_done_again() {
    let world = World::new();
    let source = Invoke::new().answer(|_, _| panic!("s3cr3t"));
    let function = world.with_handler(source, &charge(), charging(&world));
    for _ in 0..2 {
        assert_eq!(kind(&world, &function, json!({ "id": "a" })).await, "ResultLost");
    }
    world.ledger.assert_once("a");
}
