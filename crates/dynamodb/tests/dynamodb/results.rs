//! For all results of handlers and all answers of DynamoDB, the key does not stay claimed, and the work
//! is not done twice.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use crate::support::{Fault, Fixture, key};
use lambda_idempotency_core::{
    clock::{Clock, SystemClock},
    outcome::{Outcome, ResultKept},
    policy::Policy,
    record::Json,
};
use lambda_idempotency_dynamodb::DynamoDbStore;
use lambda_idempotency_engine::{
    batch::{Batch, Delivery, Engine, Pace, Returned, Work},
    call::RecordId,
    completed::Cache,
    delivered::Delivered,
};
use serde_json::json;

/// The largest item, in bytes, with all names and values of attributes.
const LIMIT: usize = 400 * 1024;

/// One invocation with these results, each of a record with another key.
async fn deliver(
    store: &DynamoDbStore,
    runs: &AtomicUsize,
    timeout: Duration,
    results: &[Returned],
) -> Vec<Outcome> {
    let job = |result: Returned| {
        move || {
            runs.fetch_add(1, Ordering::Relaxed);
            result
        }
    };
    let deliveries = results.iter().cloned().enumerate().map(|(at, result)| {
        let job = job(result);
        Delivery {
            record: RecordId::new("test", at.to_string()),
            delivered: Delivered::default(),
            group: None,
            receives: 0,
            lets_pass: false,
            work: Work::Keyed {
                key: key(at),
                fingerprint: None,
                payload: "{}",
                job: Box::new(move |_| Box::pin(async move { Ok(job()) })),
            },
        }
    });
    let (policy, pace) = (Policy::default(), Pace::default());
    let batch = Batch::for_operation("op", &policy, &pace)
        .within(None, Some(SystemClock.now().plus(timeout)))
        .with(deliveries.collect());
    // Without a cache, as in a new process.
    Engine::new(store.clone()).with_cache(Cache::off()).run(batch).await
}

const LONG: Duration = Duration::from_secs(30);

fn text(bytes: usize) -> Returned {
    Returned::Value(format!("\"{}\"", "x".repeat(bytes.saturating_sub(2))).into())
}

fn status(fixture: &Fixture, n: usize) -> String {
    let item = fixture.item(key(n).as_str()).unwrap();
    item["status"]["S"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_result_of_any_size_completes_its_key() {
    let (small, huge) = (100, 3 * LIMIT);
    // The rest of the item takes about two hundred bytes, so the limit is among these sizes.
    let around = (0..40).map(|step| LIMIT - 390 + 10 * step);
    let sizes: Vec<usize> = [small, huge].into_iter().chain(around).collect();
    let fixture = Fixture::start().await;
    let runs = AtomicUsize::new(0);
    let results: Vec<Returned> = sizes.iter().map(|size| text(*size)).collect();
    let first = deliver(&fixture.store(), &runs, LONG, &results).await;
    let mut kept_sizes = Vec::new();
    for (at, (outcome, size)) in first.iter().zip(&sizes).enumerate() {
        let Outcome::Executed { result: Some(result), kept, .. } = outcome else {
            panic!("{size} bytes: {outcome:?}")
        };
        assert_eq!(result.len(), *size, "the caller gets the whole result");
        assert_eq!(status(&fixture, at), "COMPLETED", "{size} bytes");
        match kept {
            ResultKept::Whole => kept_sizes.push(*size),
            kept => assert_eq!(*kept, ResultKept::TooLarge, "{size} bytes"),
        }
    }
    let largest = *kept_sizes.iter().max().unwrap();
    assert!((LIMIT - 390..LIMIT).contains(&largest), "{largest} of {LIMIT} bytes are kept");
    assert!(sizes.iter().all(|size| (*size <= largest) == kept_sizes.contains(size)));

    let second = deliver(&fixture.store(), &runs, LONG, &results).await;
    for ((outcome, size), returned) in second.iter().zip(&sizes).zip(&results) {
        let Outcome::Replayed { result, .. } = outcome else { panic!("{size} bytes: {outcome:?}") };
        let Returned::Value(expected) = returned else { panic!("all are values") };
        let expected: Option<&Json> = kept_sizes.contains(size).then_some(expected);
        assert!(result.as_ref() == expected, "{size} bytes");
    }
    assert_eq!(runs.into_inner(), sizes.len(), "each handler was called once");
}

/// One request for ten claims, one for ten completions with their results, and the requests of another
/// process that reads them.
#[tokio::test]
async fn keeping_ten_results_costs_as_many_requests_as_keeping_none() {
    let requests = async |result: Returned| {
        let fixture = Fixture::start().await;
        let results = vec![result; 10];
        let runs = AtomicUsize::new(0);
        let first = deliver(&fixture.store(), &runs, LONG, &results).await;
        let (fresh, value) = (fixture.wire.operations(), first[9].result().cloned());
        let second = deliver(&fixture.store(), &runs, LONG, &results).await;
        assert_eq!(second[9].result(), value.as_ref(), "a duplicate gets the result of the first");
        assert_eq!(runs.into_inner(), 10);
        (fresh, fixture.wire.operations())
    };
    // A process that loses the processor between two handlers sends the completions it has, so one delivery
    // can need more requests than another on a busy machine.
    let fewest = async |result: Returned| {
        let mut deliveries = Vec::new();
        for _ in 0..5 {
            deliveries.push(requests(result.clone()).await);
        }
        deliveries.into_iter().min_by_key(|(fresh, both)| fresh.len() + both.len()).unwrap()
    };
    let (fresh, both) = fewest(text(2000)).await;
    assert_eq!((fresh.clone(), both), fewest(Returned::Nothing).await);
    assert!(fresh.len() <= 3, "{fresh:?}");
}

/// The store computes sizes as DynamoDB documents them. If DynamoDB computes a larger size, it refuses
/// the item, and the result is left out.
#[tokio::test]
async fn a_result_that_dynamodb_refuses_as_too_large_is_left_out() {
    let fixture = Fixture::start().await;
    let runs = AtomicUsize::new(0);
    let refusal = Fault::Instead(
        400,
        json!({
            "__type": "com.amazon.coral.validate#ValidationException",
            "message": "Item size has exceeded the maximum allowed size",
        }),
    );
    fixture.wire.fault([Fault::Pass, refusal]);
    let outcomes = deliver(&fixture.store(), &runs, LONG, &[text(10)]).await;
    assert!(
        matches!(
            &outcomes[0],
            Outcome::Executed { result: Some(_), kept: ResultKept::TooLarge, .. }
        ),
        "{outcomes:?}"
    );
    assert_eq!(fixture.wire.operations(), ["PutItem", "UpdateItem", "UpdateItem"]);
    assert_eq!(status(&fixture, 0), "COMPLETED");
}
