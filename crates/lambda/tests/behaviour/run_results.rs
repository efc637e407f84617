//! `run`: results are replayed unchanged, or an error names why not.

use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use lambda_idempotency::{Run, RunError, error::ResultLost};
use lambda_idempotency_core::clock::Clock as _;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::support::{Unserializable, World, place};

async fn run<R: Serialize + DeserializeOwned + Send>(
    world: &World,
    value: R,
) -> Result<Run<R>, RunError> {
    let function = |_| async { Ok(value) };
    world.call(&world.idempotency(), &place(), &json!({ "id": "a" }), function).await
}

/// Runs twice in a new world; the second result must equal the first.
async fn replays<R>(value: R)
where
    R: Serialize + DeserializeOwned + Send + Clone + PartialEq + Debug,
{
    let world = World::instant();
    let first = run(&world, value.clone()).await.unwrap();
    assert_eq!((&first.result, first.replayed), (&value, false));
    let second = run(&world, value.clone()).await.unwrap();
    assert_eq!((&second.result, second.replayed), (&value, true));
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Answer {
    Nothing,
    Paid { amount: u64, note: Option<String> },
}

#[tokio::test]
async fn empty_and_false_results_are_replayed() {
    replays(0).await;
    replays(false).await;
    replays(String::new()).await;
    replays(()).await;
    replays(None::<u32>).await;
    replays(Vec::<u32>::new()).await;
    replays(BTreeMap::<String, u32>::new()).await;
    replays(Value::Null).await;
    replays(json!({})).await;
}

#[tokio::test]
async fn results_keep_their_type_and_their_digits() {
    replays(Answer::Nothing).await;
    replays(Answer::Paid { amount: u64::MAX, note: Some("\"\\\n😀".to_owned()) }).await;
    replays(("null".to_owned(), i64::MIN, 0.1 + 0.2, '\0')).await;
    replays(json!({ "$serde": [1.5, "x", null], "": {} })).await;
}
#[tokio::test]
async fn a_result_of_another_type_is_an_error() {
    let world = World::instant();
    run(&world, "text".to_owned()).await.unwrap();
    let error = run(&world, 7).await.unwrap_err();
    assert!(matches!(error, RunError::ResultLost(_)) && !error.is_transient());
    assert!(error.to_string().contains("another type"), "{error}");
    assert_eq!(run(&world, String::new()).await.unwrap().result, "text");
}

#[tokio::test]
async fn a_result_that_cannot_be_serialized_is_returned_now_and_lost_later() {
    for result in [false, true].map(Unserializable) {
        let world = World::instant();
        let first = run(&world, result.clone()).await.unwrap();
        assert_eq!((first.replayed, first.recorded), (false, true));
        let error = run(&world, result).await.unwrap_err();
        assert!(matches!(error, RunError::ResultLost(_)), "{error:?}");
    }
}
#[tokio::test]
async fn a_payload_that_cannot_be_serialized_is_refused() {
    let world = World::new();
    let (idempotency, payload) = (world.idempotency(), Unserializable(false));
    let error = world.call(&idempotency, &place(), &payload, async |_| Ok(1)).await;
    assert!(matches!(error, Err(RunError::Unserializable)));
    assert!(!error.unwrap_err().to_string().contains("s3cr3t"));
}

#[tokio::test]
async fn a_run_says_when_the_work_was_done_and_until_when_its_key_answers() {
    let world = World::instant();
    let start = world.clock.now();
    let first = run(&world, 1).await.unwrap();
    assert_eq!(first.done_at, Some(start));
    assert_eq!(first.answers_until, Some(start.plus(Duration::from_hours(24))));
    world.clock.advance(Duration::from_hours(1));
    let second = run(&world, 2).await.unwrap();
    assert!(second.replayed);
    assert_eq!((second.done_at, second.answers_until), (first.done_at, first.answers_until));
}

#[tokio::test]
async fn a_result_whose_time_has_passed_is_lost_and_the_work_is_not_done_again() {
    let world = World::instant();
    let operation = place().result_retention(Duration::from_mins(10));
    let (idempotency, payload) = (world.idempotency(), json!({ "id": "a" }));
    let runs = async || world.run(&idempotency, &operation, &payload, 1).await;
    let kept = async || idempotency.kept_result::<u32, _>(&operation, &payload).await;
    assert!(!runs().await.unwrap().replayed);
    world.clock.advance(Duration::from_mins(10));
    assert!(runs().await.unwrap().replayed);
    assert_eq!(kept().await.unwrap(), Some(1));
    world.clock.advance(Duration::from_millis(1));
    for lost in [runs().await.map(|run| run.result), kept().await.map(Option::unwrap)] {
        assert!(matches!(lost, Err(RunError::ResultLost(ResultLost::NotKept))), "{lost:?}");
    }
}
