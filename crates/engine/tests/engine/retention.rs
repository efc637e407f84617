//! How long a completion answers, and what a delivery is told of it.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::Timestamp,
    failure::Failure,
    outcome::{Completion, Outcome},
    policy::Mode,
    record::{Owner, Status},
    store::StoreErrorKind,
};
use lambda_idempotency_engine::call::Call;
use lambda_idempotency_testkit::faults::Fault;

use crate::support::{Rec, START, World, key, ok, rec};

const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);

async fn outcome(world: &World, record: Rec) -> Outcome {
    world.clock.drive(world.invoke(vec![record])).await.pop().unwrap()
}

async fn completion(world: &World, record: Rec) -> Completion {
    let outcome = outcome(world, record).await;
    assert!(outcome.completion().is_some(), "nothing is recorded: {outcome:?}");
    outcome.completion().unwrap()
}

/// A record whose handler asks for these times in minutes, one after the other.
fn asking<const N: usize>(label: &'static str, times: [u64; N]) -> Rec {
    rec(label, move |_, call: Call| async move {
        times.iter().for_each(|minutes| call.retain_for(Duration::from_mins(*minutes)));
        Ok(())
    })
}

/// For how long a completion answers, in whole minutes.
fn minutes(completion: Completion) -> u64 {
    completion.answers_until.since(completion.done_at.unwrap()).as_secs() / 60
}

#[tokio::test]
async fn a_delivery_is_told_when_its_work_was_done_and_until_when_its_key_answers() {
    let world = World::without_latency();
    let first = completion(&world, ok("a")).await;
    assert_eq!((first.done_at, first.answers_until), (Some(START), START.plus(DAY)));
    world.clock.advance(MINUTE);
    for _ in 0..2 {
        assert_eq!(completion(&world, ok("a")).await, first, "from the store, and from memory");
    }
    let copies = world.clock.drive(world.invoke(vec![ok("b"), ok("b")])).await;
    assert_eq!(copies[0].completion(), copies[1].completion());
    assert_eq!(copies[1].completion().unwrap().done_at, Some(START.plus(MINUTE)));
}

#[tokio::test]
async fn who_was_overtaken_is_told_of_the_completion_of_its_successor() {
    let world = World::without_latency();
    let until = START.plus(DAY);
    let overtaken = rec("a", move |world: World, _| async move {
        let mut record = world.stored("a").await.unwrap();
        (record.status, record.owner) = (Status::Completed, Some(Owner::from_bits(7)));
        (record.lease_until, record.expires_at) = (Some(START.plus(MINUTE)), until);
        record.result = Some("2".into());
        world.store.inner().insert(key("a"), record);
        Ok(())
    });
    let outcome = outcome(&world, overtaken).await;
    assert!(
        matches!(&outcome, Outcome::Superseded { result: Some(two), .. } if &**two == "2"),
        "{outcome:?}"
    );
    let said = outcome.completion().unwrap();
    assert_eq!((said.done_at, said.answers_until), (Some(START.plus(MINUTE)), until));
}

#[tokio::test]
async fn where_nothing_is_recorded_nothing_is_said() {
    let mut world = World::new();
    let lost = Fault::refuse(StoreErrorKind::Unavailable).that_writes(Status::Completed).always();
    world.store.inject(lost);
    let lost = outcome(&world, ok("a")).await;
    assert_eq!((lost.label(), lost.completion()), ("completion_lost", None));
    world.store.heal();
    world.policy.mode = Mode::Mutex;
    let mutex = outcome(&world, asking("b", [1])).await;
    assert_eq!((mutex.label(), mutex.completion()), ("executed", None));
    assert!(mutex.result().is_some(), "for its own delivery");
    assert_eq!(world.stored("b").await, None);
}

#[tokio::test]
async fn a_call_shortens_how_long_its_key_answers() {
    let world = World::without_latency();
    let short = completion(&world, asking("a", [10])).await;
    assert_eq!(short.answers_until, START.plus(10 * MINUTE));
    assert_eq!(world.stored("a").await.unwrap().expires_at, short.answers_until);
    world.clock.advance(10 * MINUTE);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["replayed"], "at its last instant");
    world.clock.advance(Duration::from_secs(2));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"], "after it, and the clock skew");
}

#[tokio::test]
async fn the_last_call_counts_and_the_retention_of_the_operation_is_the_maximum() {
    let world = World::without_latency();
    assert_eq!(minutes(completion(&world, asking("a", [10, 20])).await), 20);
    assert_eq!(minutes(completion(&world, asking("b", [20, 10])).await), 10);
    assert_eq!(minutes(completion(&world, asking("c", [25 * 60])).await), 24 * 60);
    let copies = world.clock.drive(world.invoke(vec![asking("d", [1]), ok("d")])).await;
    assert!(copies.iter().all(|copy| minutes(copy.completion().unwrap()) == 1), "{copies:?}");
}

#[tokio::test]
async fn without_a_claim_a_completion_answers_long_enough_to_exclude_a_late_request() {
    let mut world = World::without_latency();
    world.policy.mode = Mode::Optimistic;
    assert_eq!(minutes(completion(&world, asking("a", [1])).await), 15);
    assert_eq!(minutes(completion(&world, asking("b", [16])).await), 16);
}

#[tokio::test]
async fn an_attempt_that_fails_is_remembered_as_long_as_the_operation_says() {
    let world = World::without_latency();
    let failing = |failure: fn() -> Failure| {
        move |_, call: Call| async move {
            call.retain_for(MINUTE);
            Err(failure())
        }
    };
    for (label, fails) in [
        ("a", (|| Failure::transient("no luck")) as fn() -> Failure),
        ("b", || Failure::permanent("never")),
    ] {
        world.deliver(vec![rec(label, failing(fails))]).await;
        assert_eq!(world.stored(label).await.unwrap().expires_at, START.plus(DAY), "{label}");
    }
}

/// Whether a duplicate gets the result after each of these times.
async fn results_after(world: &World, label: &'static str, times: &[Duration]) -> Vec<bool> {
    let mut all = Vec::new();
    for time in times {
        world.clock.set(START.plus(*time));
        let outcome = outcome(world, ok(label)).await;
        assert_eq!(outcome.label(), "replayed");
        assert!(outcome.completion().is_some());
        all.push(outcome.result().is_some());
    }
    all
}

#[tokio::test]
async fn after_its_time_a_result_is_not_given_and_the_key_still_answers() {
    let mut world = World::without_latency();
    world.policy.result_retention = Some(MINUTE);
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    let past = MINUTE + Duration::from_millis(1);
    assert_eq!(results_after(&world, "a", &[MINUTE, past]).await, [true, false], "from memory");
    let hour = Duration::from_hours(1);
    assert_eq!(results_after(&world, "a", &[hour, hour]).await, [false, false]);
    assert!(world.stored("a").await.unwrap().result.is_some(), "it is not deleted");
}

/// A duplicate that was not received before does not look for a record, and its handler runs.
#[tokio::test]
async fn without_a_claim_a_result_is_not_given_after_its_time_either() {
    let mut world = World::without_latency();
    (world.policy.mode, world.policy.result_retention) = (Mode::Optimistic, Some(MINUTE));
    assert_eq!(world.deliver(vec![ok("a")]).await, ["executed"]);
    for (after, is_given) in [(MINUTE, true), (Duration::from_millis(1), false)] {
        world.clock.advance(after);
        let outcome = outcome(&world, ok("a")).await;
        assert!(matches!(outcome, Outcome::Superseded { .. }), "{outcome:?}");
        assert_eq!(outcome.result().is_some(), is_given);
    }
}

#[tokio::test]
async fn a_record_that_does_not_say_when_it_was_done_gives_its_result() {
    let mut world = World::without_latency();
    world.policy.result_retention = Some(MINUTE);
    world.deliver(vec![ok("a")]).await;
    let mut record = world.stored("a").await.unwrap();
    record.lease_until = None;
    world.store.inner().insert(key("a"), record);
    world.clock.advance(Duration::from_hours(1));
    let outcome = outcome(&world, ok("a")).await;
    assert!(matches!(&outcome, Outcome::Replayed { result: Some(_), .. }), "{outcome:?}");
    assert_eq!(outcome.completion().unwrap().done_at, None::<Timestamp>);
}
