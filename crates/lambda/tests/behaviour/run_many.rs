//! `run_many`: many payloads of one operation, in one batch.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use futures_util::future::join;
use lambda_idempotency::{
    Call, ConfigError, Failure, Mode, Operation, Run, RunContext, RunError,
    error::Rejection,
    keys::{powertools::PowertoolsKeys, producer::KeySpec},
    policy::{Lease, OnOutage},
};
use lambda_idempotency_core::{clock::Clock as _, record::Status, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::Fault;
use serde_json::{Value, json};

use crate::support::World;

fn charge() -> Operation {
    Operation::new("charge").key("id")
}

/// Charges each payment, and counts the calls.
async fn charged(
    world: &World,
    operation: &Operation,
    payments: impl IntoIterator<Item = Value>,
    calls: &AtomicU32,
) -> Vec<Result<Run<u64>, RunError>> {
    let function = async |payment: Value, _: Call| {
        calls.fetch_add(1, Ordering::Relaxed);
        match payment["amount"].as_u64() {
            Some(amount) => Ok(amount),
            None => Err(Failure::transient("no amount")),
        }
    };
    let idempotency = world.idempotency();
    let context = RunContext::without_deadline();
    let running = idempotency.run_many(operation, payments, &context, function);
    world.clock.drive(running).await
}

fn plain(run: Result<Run<u64>, RunError>) -> (u64, bool, bool) {
    let run = run.unwrap();
    (run.result, run.replayed, run.recorded)
}

#[tokio::test]
async fn results_are_in_the_order_of_the_payloads_and_later_calls_get_them() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let payments = || (0..60).map(|n| json!({ "id": n, "amount": 100 + n }));
    for is_replay in [false, true] {
        let runs = charged(&world, &charge(), payments(), &calls).await;
        let runs: Vec<_> = runs.into_iter().map(plain).collect();
        assert_eq!(runs, (0..60).map(|n| (100 + n, is_replay, true)).collect::<Vec<_>>());
    }
    assert_eq!(calls.into_inner(), 60);
    assert!(charged(&world, &charge(), [], &AtomicU32::new(0)).await.is_empty());
}

#[tokio::test]
async fn of_payloads_with_one_key_one_runs_and_the_others_get_its_result() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let own = charge();
    let powertools =
        Operation::new("charge").powertools(PowertoolsKeys::python("orders.charge")).key("id");
    for (round, operation) in (1..).zip([own, powertools]) {
        let payments = [1, 2, 1, 1].map(|id| json!({ "id": id, "amount": 10 * id }));
        let runs = charged(&world, &operation, payments, &calls).await;
        let runs: Vec<_> = runs.into_iter().map(plain).collect();
        let (first, copy) = ((10, false, true), (10, true, true));
        assert_eq!(runs, [first, (20, false, true), copy, copy]);
        assert_eq!(calls.load(Ordering::Relaxed), 2 * round);
    }
}

/// The store is down when the function has returned, so a later call does the work again.
#[tokio::test]
async fn copies_of_a_payload_whose_completion_was_lost_are_not_recorded() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let payments = || [1, 1, 2, 1].map(|id| json!({ "id": id, "amount": 10 * id }));
    let keys = KeySpec::new("charge", "id").producer().unwrap();
    let lost = keys.key(r#"{"id":1}"#).unwrap();
    let refused = Fault::refuse(StoreErrorKind::Unavailable).that_writes(Status::Completed);
    world.store.inject(refused.for_key(&lost).always());
    let runs = charged(&world, &charge(), payments(), &calls).await;
    let runs: Vec<_> = runs.into_iter().map(plain).collect();
    assert_eq!(runs, [(10, false, false), (10, true, false), (20, false, true), (10, true, false)]);
    assert_eq!(calls.into_inner(), 2);
}

#[tokio::test]
async fn as_many_functions_run_at_a_time_as_the_context_says() {
    let world = World::new();
    let (running, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let slow = async |_: Value, _: Call| {
        most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        world.clock.sleep(Duration::from_secs(1)).await;
        running.fetch_sub(1, Ordering::Relaxed);
        Ok::<_, Failure>(1)
    };
    let context = RunContext::without_deadline();
    for (context, at_once) in [(context, 16), (context.with_concurrency(3), 3)] {
        let payments = (0..20).map(|id| json!({ "id": [at_once, id] }));
        let idempotency = world.idempotency();
        let charge = charge();
        let runs = idempotency.run_many(&charge, payments, &context, slow);
        let runs = world.clock.drive(runs).await;
        assert!(runs.iter().all(Result::is_ok), "{runs:?}");
        assert_eq!(most.swap(0, Ordering::Relaxed), at_once);
    }
}

#[tokio::test]
async fn each_payload_has_its_own_error_and_keeps_no_other_from_running() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let payments = [
        json!({ "amount": 1 }),
        json!({ "id": 2, "amount": 2 }),
        json!({ "id": 3 }),
        json!({ "id": 4, "amount": 4 }),
    ];
    let mut runs = charged(&world, &charge(), payments, &calls).await.into_iter();
    let mut next = || runs.next().unwrap();
    let no_key = next().unwrap_err();
    assert!(matches!(no_key, RunError::Rejected(Rejection::Key { .. })), "{no_key:?}");
    assert_eq!(plain(next()), (2, false, true));
    let failed = next().unwrap_err();
    assert!(matches!(failed, RunError::Failed(_)), "{failed:?}");
    assert_eq!(plain(next()), (4, false, true));
    assert_eq!(calls.into_inner(), 3);
}

#[tokio::test]
async fn a_mistake_in_the_operation_is_the_error_of_each_payload() {
    let (world, calls) = (World::new(), AtomicU32::new(0));
    let payments = || [1, 2].map(|id| json!({ "id": id, "amount": 1 }));
    let runs = charged(&world, &charge().key("id["), payments(), &calls).await;
    assert_eq!(runs.len(), 2);
    let is_key = |run: &Result<_, _>| matches!(run, Err(RunError::Config(ConfigError::Key(_))));
    assert!(runs.iter().all(is_key), "{runs:?}");
    let runs = charged(&world, &charge().mode(Mode::Mutex), payments(), &calls).await;
    let runs: Vec<_> = runs.into_iter().map(plain).collect();
    assert_eq!(runs, [(1, false, false), (1, false, false)], "a mutex records nothing");
}

#[tokio::test]
async fn what_cannot_start_before_the_deadline_is_out_of_time() {
    let world = World::new();
    let idempotency = world.idempotency();
    let deadline = world.clock.now().plus(Duration::from_secs(10));
    let slow = async |_: Value, _: Call| {
        world.clock.sleep(Duration::from_secs(6)).await;
        Ok::<_, Failure>(1)
    };
    let payments = (0..20).map(|id| json!({ "id": id }));
    let operation = charge();
    let running = idempotency.run_many(&operation, payments, &deadline, slow);
    let runs = world.clock.drive(running).await;
    let done = runs.iter().filter(|run| run.is_ok()).count();
    let late = runs.iter().filter(|run| matches!(run, Err(RunError::OutOfTime))).count();
    assert_eq!((done, late), (16, 4), "{runs:?}");
}

#[tokio::test]
async fn inside_itself_it_is_refused() {
    let world = World::new();
    let (idempotency, operation) = (world.idempotency(), charge());
    let function = async |payment: Value, _: Call| {
        let context = RunContext::without_deadline();
        let inner = async |_: Value, _: Call| Ok::<_, Failure>(1);
        let runs = idempotency.run_many(&operation, [payment], &context, inner).await;
        assert!(matches!(&runs[..], [Err(RunError::Nested { .. })]), "{runs:?}");
        Ok::<_, Failure>(2)
    };
    let payments = [json!({ "id": 1 })];
    let context = RunContext::without_deadline();
    let function = |payment, call| Box::pin(function(payment, call));
    let runs = world.clock.drive(idempotency.run_many(&operation, payments, &context, function));
    assert_eq!(runs.await[0].as_ref().unwrap().result, 2);
}

/// Drives a call whose store answers nothing for so many seconds: each call of it waits until its deadline.
async fn while_closed<T>(world: &World, seconds: u64, running: impl Future<Output = T>) -> T {
    world.store.inject(Fault::delay(world.clock.clone(), Duration::from_hours(2)).always());
    let opens = async {
        world.clock.sleep(Duration::from_secs(seconds)).await;
        world.store.heal();
    };
    world.clock.drive(join(running, opens)).await.0
}

/// Nothing delivers the payloads again, so claiming goes on for as long as a function could still start.
#[tokio::test]
async fn claiming_goes_on_while_the_time_of_the_call_lasts() {
    for lease in [Lease::Invocation, Lease::Renewed { length: Duration::from_secs(12) }] {
        let operation = charge().lease(lease);
        for (closed, is_done) in [(40, true), (58, false)] {
            let world = World::new();
            let idempotency = world.idempotency();
            let deadline = world.clock.now().plus(Duration::from_secs(60));
            let payments = [1, 2, 3].map(|id| json!({ "id": id }));
            let one = idempotency
                .run(&operation, &payments[0], &deadline, async |_: Call| Ok::<_, Failure>(1));
            let function = async |_: Value, _: Call| Ok::<_, Failure>(1);
            let many = payments[1..].to_vec();
            let many = idempotency.run_many(&operation, many, &deadline, function);
            let (one, many) = while_closed(&world, closed, join(one, many)).await;
            for run in many.into_iter().chain([one]) {
                assert_eq!(run.is_ok(), is_done, "{lease:?}, closed for {closed} s: {run:?}");
            }
        }
    }
}

/// Functions start until the end, and so their keys are claimed until then: a store sends nothing for a call whose time is
/// over.
#[tokio::test]
async fn payloads_for_which_no_time_is_left_are_late_and_no_outage() {
    let world = World::new();
    let deadline = world.clock.now().plus(Duration::from_secs(30));
    let function = async |_: Value, _: Call| {
        world.clock.sleep(Duration::from_millis(200)).await;
        Ok::<_, Failure>(())
    };
    let payments = (0..3_000).map(|id| json!({ "id": id }));
    let (idempotency, operation) = (world.idempotency(), charge());
    let running = idempotency.run_many(&operation, payments, &deadline, function);
    let runs = world.clock.drive(running).await;
    let late = runs.iter().filter(|run| matches!(run, Err(RunError::OutOfTime))).count();
    let done = runs.iter().filter(|run| run.is_ok()).count();
    assert!(late > 0 && done + late == runs.len(), "{done} of {}, {late} late", runs.len());
}

/// Without a claim, the function is called early enough to have most of the time.
#[tokio::test]
async fn where_an_outage_runs_without_a_claim_claiming_is_given_up_early() {
    let world = World::new();
    let operation = charge().on_outage(OnOutage::RunUnprotected);
    let begun = world.clock.now();
    let function = async |_: Call| Ok::<_, Failure>(world.clock.now().since(begun).as_secs());
    let (payment, deadline) = (json!({ "id": 1 }), begun.plus(Duration::from_secs(60)));
    let idempotency = world.idempotency();
    let running = idempotency.run(&operation, &payment, &deadline, function);
    let run = while_closed(&world, 3_600, running).await.unwrap();
    assert!(run.result <= 7 && !run.recorded, "{run:?}");
}
