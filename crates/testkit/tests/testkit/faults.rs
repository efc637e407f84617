//! Faults concern the calls that they select, and no others.

use std::time::Duration;

use futures_util::FutureExt;
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_testkit::{
    clock::ManualClock,
    conformance::SCENARIOS,
    crashing::{crash_points, drop_after},
    faults::{Call, Fault, FaultyStore, GuardKind},
};

const DEADLINE: Timestamp = Timestamp::from_secs(1_000_000);

fn key(name: &str) -> Key {
    Key::from_text(name)
}

fn claim(name: &str, owner: u128) -> Write {
    let mut record = IdempotencyRecord::new(Status::InProgress, DEADLINE);
    record.owner = Some(Owner::from_bits(owner));
    Write::new(key(name), Guard::Absent, Some(record))
}

fn release(name: &str, owner: u128) -> Write {
    Write::new(key(name), Guard::OwnedBy(Owner::from_bits(owner)), None)
}

/// The verdicts in brief: W for written, F for found, or the kind of an error.
async fn brief_verdicts(store: &FaultyStore<MemoryStore>, writes: &[Write]) -> String {
    let verdicts = store.write(writes, DEADLINE).await;
    verdicts.iter().map(brief).collect::<Vec<_>>().join(" ")
}

fn brief(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Written => "W".to_owned(),
        Verdict::Found(_) => "F".to_owned(),
        Verdict::EffectRefused(_) => "R".to_owned(),
        Verdict::Unknown(error) => format!("{:?}", error.kind()),
    }
}

fn faulty() -> FaultyStore<MemoryStore> {
    FaultyStore::new(MemoryStore::new())
}

#[tokio::test]
async fn a_store_without_faults_conforms() {
    for scenario in SCENARIOS {
        (scenario.run)(&faulty().yielding()).await;
    }
}

#[tokio::test]
async fn members_are_throttled_and_the_others_applied() {
    let store = faulty();
    store.inject(Fault::refuse(StoreErrorKind::Throttled).for_keys(|key| key.as_str() != "b"));
    let batch = [claim("a", 1), claim("b", 1), claim("c", 1)];
    assert_eq!(brief_verdicts(&store, &batch).await, "Throttled W Throttled");
    assert_eq!(store.inner().len(), 1);
    assert_eq!(brief_verdicts(&store, &batch).await, "W F W", "the fault is injected once");
    assert_eq!((store.write_calls(), store.writes()), (2, 6));
}

#[tokio::test]
async fn a_fault_starts_at_the_nth_matching_call_and_repeats() {
    let store = faulty();
    let fault = Fault::refuse(StoreErrorKind::Unavailable).guarded_by(GuardKind::Absent);
    store.inject(fault.nth(2).times(2));
    let mut said = Vec::new();
    for name in ["a", "b", "c", "d"] {
        said.push(brief_verdicts(&store, &[claim(name, 1)]).await);
        assert_eq!(
            brief_verdicts(&store, &[release("x", 1)]).await,
            "W",
            "other guards do not count"
        );
    }
    assert_eq!(said, ["W", "Unavailable", "Unavailable", "W"]);
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_is_applied() {
    let store = faulty();
    store.inject(Fault::lose_answer().for_key(&key("a")));
    assert_eq!(brief_verdicts(&store, &[claim("a", 1), claim("b", 1)]).await, "Unavailable W");
    assert_eq!(store.inner().len(), 2);
}

#[tokio::test]
async fn an_outage_lasts_until_it_is_healed() {
    let store = faulty();
    store.outage();
    for _ in 0..3 {
        assert_eq!(brief_verdicts(&store, &[claim("a", 1)]).await, "Unavailable");
        assert!(store.read(&[key("a")], DEADLINE).await[0].is_err());
    }
    assert!(store.inner().is_empty());
    store.heal();
    assert_eq!(brief_verdicts(&store, &[claim("a", 1)]).await, "W");
    assert_eq!(store.read_calls(), 3);
}

#[tokio::test]
async fn a_fault_can_concern_reads_only() {
    let store = faulty();
    store.inject(Fault::refuse(StoreErrorKind::Denied).on_reads().for_key(&key("b")));
    assert_eq!(brief_verdicts(&store, &[claim("a", 1), claim("b", 1)]).await, "W W");
    let answers = store.read(&[key("a"), key("b")], DEADLINE).await;
    assert!(answers[0].as_ref().is_ok_and(Option::is_some));
    assert_eq!(answers[1].as_ref().unwrap_err().kind(), StoreErrorKind::Denied);
}

#[tokio::test]
async fn a_duplicate_arrives_at_once_or_after_further_calls() {
    for (later, left) in [(0, 0), (1, 1), (2, 0)] {
        let store = faulty();
        store.inject(Fault::duplicate(later).guarded_by(GuardKind::Absent));
        // The key is claimed and deleted, so only a duplicate that arrives after that leaves a record.
        assert_eq!(brief_verdicts(&store, &[claim("a", 1)]).await, "W");
        assert_eq!(brief_verdicts(&store, &[release("a", 1)]).await, "W");
        assert_eq!(store.inner().len(), left, "after {later} further calls");
        assert_eq!(brief_verdicts(&store, &[]).await, "");
        assert_eq!(store.inner().len(), usize::from(later > 0), "after {later} further calls");
    }
}

#[tokio::test]
async fn a_delay_is_before_or_after_the_write_is_applied() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let five = Duration::from_secs(5);
    for (fault, applied) in
        [(Fault::delay(clock.clone(), five), 0), (Fault::delay_answer(clock.clone(), five), 1)]
    {
        let store = faulty();
        store.inject(fault);
        let writes = [claim("a", 1)];
        let mut call = store.write(&writes, DEADLINE);
        assert!(call.as_mut().now_or_never().is_none());
        assert_eq!((store.inner().len(), clock.sleepers()), (applied, 1));
        clock.advance(five);
        assert_eq!(brief(&call.await[0]), "W");
        assert_eq!(store.inner().len(), 1);
    }
    assert_eq!(clock.now(), Timestamp::from_secs(10));
}

#[tokio::test]
async fn a_delay_ends_with_the_deadline_of_the_call() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let five = Duration::from_secs(5);
    for (make, applied) in
        [(Fault::delay as fn(ManualClock, Duration) -> Fault, 0), (Fault::delay_answer, 1)]
    {
        for (takes, expected) in [(5, "W"), (6, "Unavailable"), (3600, "Unavailable")] {
            let store = faulty();
            store.inject(make(clock.clone(), Duration::from_secs(takes)));
            let (begun, writes) = (clock.now(), [claim("a", 1)]);
            let verdicts = clock.drive(store.write(&writes, begun.plus(five))).await;
            assert_eq!(clock.now(), begun.plus(five), "the call ends at its deadline");
            assert_eq!(brief(&verdicts[0]), expected, "it takes {takes} s");
            if let Verdict::Unknown(error) = &verdicts[0] {
                assert!(error.may_have_applied());
                assert_eq!(store.inner().len(), applied);
            }
            store.inject(make(clock.clone(), Duration::from_secs(takes)).on_reads());
            let keys = [writes[0].key.clone()];
            let read = clock.drive(store.read(&keys, clock.now().plus(five))).await;
            assert_eq!(read[0].is_err(), takes > 5);
        }
    }
}

#[tokio::test]
async fn a_seed_gives_the_same_faults_each_time() {
    let mut runs = Vec::new();
    for seed in [7, 7, 8] {
        let store = faulty();
        store.inject(Fault::refuse(StoreErrorKind::Throttled).one_in(3, seed));
        let mut said = Vec::new();
        for number in 0..60 {
            said.push(brief_verdicts(&store, &[claim(&number.to_string(), 1)]).await);
        }
        assert!((5..40).contains(&said.iter().filter(|said| *said == "Throttled").count()));
        runs.push(said);
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[tokio::test]
async fn hooks_run_before_and_after_a_write_and_the_history_keeps_it() {
    let store = faulty();
    let meddler = store.clone();
    store.before(move |writes| {
        if let [Write { key, record: Some(record), .. }] = writes {
            meddler.inner().insert(key.clone(), record.clone());
        }
    });
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&seen);
    store.after(move |_, verdicts| log.lock().unwrap().extend(verdicts.iter().map(brief)));
    assert_eq!(brief_verdicts(&store, &[claim("a", 1)]).await, "F");
    assert_eq!(*seen.lock().unwrap(), ["F"]);
    let history = store.history();
    assert!(matches!(
        &history[..],
        [Call::Write { writes, verdicts: Some(verdicts) }]
            if writes.len() == 1 && matches!(verdicts[..], [Verdict::Found(_)])
    ));
}

#[tokio::test]
async fn a_yielding_store_can_be_dropped_before_and_after_a_write_is_applied() {
    let mut left = Vec::new();
    let points = crash_points(async |polls| {
        let store = faulty().yielding();
        let ended = drop_after(polls, store.write(&[claim("a", 1)], DEADLINE)).await;
        left.push(store.inner().len());
        if ended.is_none() && polls > 0 {
            assert!(matches!(&store.history()[..], [Call::Write { verdicts: None, .. }]));
        }
        ended.is_some()
    })
    .await;
    assert_eq!(points, 3);
    assert_eq!(left, [0, 0, 1, 1], "not started; not applied; applied, no answer; answered");
}
