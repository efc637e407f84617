//! How many requests are on their way at a time, and what waits for what.

use std::{
    cell::Cell,
    pin::Pin,
    task::{Context, Waker},
    time::Duration,
};

use crate::support::{
    Fault, Fixture, PlainVerdict, claimed, completed, key, one, owner, plain, soon, unknown, write,
};
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use futures_util::future::{join, join_all};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    effects::Effects,
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_dynamodb::{DynamoDbEffects, DynamoDbStore};
use lambda_idempotency_testkit::clock::ManualClock;

/// The most requests at a time, and the most claims and reads among them.
const MOST: usize = 12;
const MOST_CLAIMS: usize = 10;

fn claim(n: usize) -> Write {
    write(n, Guard::Absent, Some(claimed(n as u128 + 1)))
}

fn completion(n: usize) -> Write {
    let own = n as u128 + 1;
    write(n, Guard::OwnedBy(owner(own)), Some(completed(own, "7")))
}

/// A claim of this worker with another end of its lease.
fn renewal(n: usize) -> (Write, IdempotencyRecord) {
    let own = claimed(n as u128 + 1);
    let mut renewed = own.clone();
    renewed.lease_until = Some(Timestamp::from_millis(3_900_000_009_000));
    (write(n, Guard::Unchanged(RecordVersion::of(&own)), Some(renewed.clone())), renewed)
}

/// Polls a call once.
fn start(call: &mut BoxFuture<'_, Vec<Verdict>>) {
    let polled = Pin::new(call).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
}

/// Lets time pass, a millisecond at a time, until `is_over`, and says whether that was within `most`.
async fn pass_until(clock: &ManualClock, most: Duration, is_over: impl Fn() -> bool) -> bool {
    let ends = clock.now().plus(most);
    while !is_over() && clock.now() < ends {
        clock.advance(Duration::from_millis(1));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    is_over()
}

async fn one_by(store: &DynamoDbStore, clock: &ManualClock, write: Write) -> Verdict {
    let late = clock.now().plus(Duration::from_secs(20));
    store.write(&[write], late).await.remove(0)
}

/// So many calls claim a key each, all at once, and complete it, with responses that take so long.
async fn claim_and_complete(store: &DynamoDbStore, calls: usize) {
    let call = |n| async move {
        assert_eq!(plain(&one(store, claim(n)).await), PlainVerdict::Written);
        assert_eq!(plain(&one(store, completion(n)).await), PlainVerdict::Written);
    };
    join_all((0..calls).map(call)).await;
}

#[tokio::test]
async fn independent_calls_cost_a_request_for_each_write_and_never_go_beyond_the_bound() {
    for delay in [0, 5] {
        let fixture = Fixture::start().await;
        fixture.wire.fault((0..800).map(|_| Fault::Slow(Duration::from_millis(delay))));
        claim_and_complete(&fixture.store(), 400).await;
        let mut operations = fixture.wire.operations();
        operations.sort_unstable();
        assert_eq!(operations, [["PutItem"; 400], ["UpdateItem"; 400]].concat());
        let most = fixture.wire.most_at_once();
        assert!((MOST_CLAIMS..=MOST).contains(&most), "{most} requests at once");
        for n in [0, 1, 200, 399] {
            assert_eq!(fixture.item(key(n).as_str()).unwrap()["status"]["S"], "COMPLETED");
        }
    }
}

/// Claims as many keys, and answers each request so late from then on.
async fn claimed_before(store: &DynamoDbStore, fixture: &Fixture, keys: usize, answers: Duration) {
    let claims: Vec<_> = (0..keys).map(claim).collect();
    for verdict in store.write(&claims, soon()).await {
        assert_eq!(plain(&verdict), PlainVerdict::Written);
    }
    fixture.wire.take();
    fixture.wire.fault((0..keys).map(|_| Fault::Slow(answers)));
}

/// However long a completion waits for its slot.
#[tokio::test]
async fn completions_that_find_no_slot_stay_within_the_bound() {
    for is_partiql in [true, false] {
        let fixture = Fixture::start().await;
        let builder = fixture.builder();
        let builder = if is_partiql { builder } else { builder.without_partiql() };
        let store = &builder.build().unwrap();
        claimed_before(store, &fixture, 48, Duration::from_millis(300)).await;
        let calls = (0..48).map(|n| one(store, completion(n)));
        let verdicts = join_all(calls).await;
        assert!(verdicts.iter().all(|verdict| plain(verdict) == PlainVerdict::Written));
        assert_eq!(fixture.wire.operations(), ["UpdateItem"; 48]);
        assert_eq!(fixture.wire.most_at_once(), MOST, "PartiQL: {is_partiql}");
    }
}

/// DynamoDB refuses a batch as a whole for one of its items, and each item is then sent by itself.
#[tokio::test]
async fn items_that_are_sent_again_by_themselves_stay_within_the_bound() {
    let fixture = Fixture::start().await;
    let store = &fixture.store();
    claimed_before(store, &fixture, 75, Duration::from_millis(300)).await;
    fixture.wire.refuse_batches();
    let batches: Vec<Vec<_>> =
        (0..3).map(|n| (n * 25..(n + 1) * 25).map(completion).collect()).collect();
    for verdicts in join_all(batches.iter().map(|writes| store.write(writes, soon()))).await {
        assert!(verdicts.iter().all(|verdict| plain(verdict) == PlainVerdict::Written));
    }
    assert_eq!(fixture.wire.operations().len(), 3 + 75);
    assert_eq!(fixture.wire.most_at_once(), MOST);
}

#[tokio::test]
async fn claims_have_ten_of_the_slots() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = &fixture.builder().clock(clock.clone()).without_partiql().build().unwrap();
    let verdicts = join_all((0..100).map(|n| one_by(store, &clock, claim(n)))).await;
    assert!(verdicts.iter().all(|verdict| plain(verdict) == PlainVerdict::Written));
    assert_eq!(fixture.wire.operations(), vec!["PutItem"; 100]);
    assert_eq!(fixture.wire.most_at_once(), MOST_CLAIMS);
}

/// As many calls that claim as may be on their way, and one more. None of them is answered.
fn hanging_claims<'s>(
    store: &'s DynamoDbStore,
    fixture: &Fixture,
    writes: &'s [Vec<Write>],
    late: Timestamp,
) -> Vec<BoxFuture<'s, Vec<Verdict>>> {
    fixture.wire.fault((0..MOST_CLAIMS).map(|_| Fault::Hang));
    let mut held: Vec<_> = writes.iter().map(|writes| store.write(writes, late)).collect();
    held.iter_mut().for_each(start);
    held
}

fn other_claims(calls: usize) -> Vec<Vec<Write>> {
    (0..calls).map(|n| (0..25).map(|m| claim(100 + n * 25 + m)).collect()).collect()
}

/// A lease ends meanwhile, and a handler would be stopped.
#[tokio::test]
async fn a_renewal_does_not_wait_behind_claims() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock.clone()).build().unwrap();
    assert_eq!(plain(&one_by(&store, &clock, claim(0)).await), PlainVerdict::Written);
    let (claims, late) = (other_claims(11), clock.now().plus(Duration::from_secs(20)));
    let _held = hanging_claims(&store, &fixture, &claims, late);
    // The clock stands still, so no slot becomes overdue.
    let renewal = one_by(&store, &clock, renewal(0).0);
    let renewal = tokio::time::timeout(Duration::from_secs(120), renewal).await;
    assert_eq!(plain(&renewal.expect("it waits")), PlainVerdict::Written);
}

/// The answer is lost, and DynamoDB does not say what the repeated renewals found.
#[tokio::test]
async fn the_look_up_of_a_renewal_does_not_wait_behind_claims() {
    let fixture = Fixture::start().await;
    fixture.wire.withhold_items();
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock.clone()).build().unwrap();
    for n in 0..2 {
        assert_eq!(plain(&one_by(&store, &clock, claim(n)).await), PlainVerdict::Written);
    }
    let (claims, late) = (other_claims(11), clock.now().plus(Duration::from_secs(20)));
    let _held = hanging_claims(&store, &fixture, &claims, late);
    fixture.wire.fault([Fault::LoseAnswer]);
    let renewals = [renewal(0).0, renewal(1).0];
    let is_over = Cell::new(false);
    let renewing = async {
        let verdicts = store.write(&renewals, late).await;
        is_over.set(true);
        verdicts
    };
    let time = async {
        let soon = Duration::from_millis(400);
        assert!(pass_until(&clock, soon, || is_over.get()).await, "it waits for a slot of claims");
    };
    let (verdicts, ()) = join(renewing, time).await;
    assert_eq!(verdicts.iter().map(plain).collect::<Vec<_>>(), vec![PlainVerdict::Written; 2]);
    assert!(fixture.wire.operations().contains(&"BatchGetItem".to_owned()));
}

/// Its lease runs out meanwhile.
#[tokio::test]
async fn a_claim_that_may_have_been_applied_is_sent_again_before_other_claims() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock.clone()).build().unwrap();
    fixture.wire.fault([Fault::LoseAnswer]);
    let late = clock.now().plus(Duration::from_secs(20));
    let lost = [claim(0)];
    let mut lost = store.write(&lost, late);
    while fixture.item("op#0").is_none() {
        start(&mut lost);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Until it pauses.
    for _ in 0..50 {
        start(&mut lost);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let claims = other_claims(15);
    let mut held = hanging_claims(&store, &fixture, &claims, late);
    clock.advance(Duration::from_millis(10));
    start(&mut lost);
    // One of the ten that are on their way. The others wait, and are not polled any more.
    drop(held.remove(0));
    let found = tokio::time::timeout(Duration::from_secs(120), lost).await;
    assert_eq!(plain(&found.expect("it waits")[0]), PlainVerdict::Written);
}

/// Which of the tables is not there has to be read. With a second slot for that, all would wait for each other.
#[tokio::test]
async fn transactions_that_have_all_slots_find_out_which_table_is_missing() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = &fixture.builder().clock(clock.clone()).build().unwrap();
    let claims: Vec<_> = (0..MOST).map(claim).collect();
    let late = clock.now().plus(Duration::from_secs(20));
    store.write(&claims, late).await;
    let commits = (0..MOST).map(|n| {
        let name = AttributeValue::S("a".into());
        let put = Put::builder().table_name("missing").item("name", name).build().unwrap();
        let mut effects = DynamoDbEffects::default();
        effects.add(TransactWriteItem::builder().put(put).build()).unwrap();
        one_by(store, &clock, completion(n).with_effects(Some(Effects::new(effects))))
    });
    let commits = tokio::time::timeout(Duration::from_secs(120), join_all(commits)).await;
    for verdict in commits.expect("they wait for each other") {
        let Verdict::EffectRefused(refused) = verdict else { panic!("{verdict:?}") };
        assert!(refused.to_string().contains("ResourceNotFoundException"), "{refused}");
    }
}

#[tokio::test]
async fn what_was_never_sent_is_not_in_doubt() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    let claims = other_claims(10);
    let _held = hanging_claims(&store, &fixture, &claims, soon());
    let early = SystemClock.now().plus(Duration::from_millis(50));
    let verdict = store.write(&[claim(0)], early).await.remove(0);
    assert!(!unknown(verdict).may_have_applied());
    assert_eq!(fixture.item("op#0"), None);
}

/// Work that is done would run again without a claim.
#[tokio::test]
async fn waiting_for_a_slot_is_an_outage_only_if_the_last_request_had_no_answer() {
    let early = || SystemClock.now().plus(Duration::from_millis(100));
    for (is_silent, kind) in
        [(false, StoreErrorKind::Contended), (true, StoreErrorKind::Unavailable)]
    {
        let fixture = Fixture::start().await;
        let store = fixture.store();
        assert_eq!(plain(&one(&store, claim(0)).await), PlainVerdict::Written);
        if is_silent {
            fixture.wire.fault([Fault::Hang]);
            let unanswered = unknown(store.write(&[claim(1)], early()).await.remove(0));
            assert_eq!(unanswered.kind(), StoreErrorKind::Unavailable);
        }
        let claims = other_claims(10);
        let _held = hanging_claims(&store, &fixture, &claims, soon());
        let error = unknown(store.write(&[claim(2)], early()).await.remove(0));
        assert_eq!((error.kind(), error.may_have_applied()), (kind, false), "{error}");
        assert!(error.to_string().contains("other requests of this process"), "{error}");
    }
}

/// Before a completion is polled a second time, a handler may compute for long.
#[tokio::test]
async fn a_completion_among_few_calls_is_sent_when_it_is_polled_first() {
    let fixture = Fixture::start().await;
    let store = fixture.store();
    for n in 0..2 {
        one(&store, claim(n)).await;
    }
    fixture.wire.take();
    let (first, second) = ([completion(0)], [completion(1)]);
    let mut first = store.write(&first, soon());
    let mut second = store.write(&second, soon());
    start(&mut first);
    start(&mut second);
    // Neither is polled again until both requests have arrived.
    let both = async {
        while fixture.wire.most_at_once() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), both).await.unwrap();
    let (first, second) = (first.await, second.await);
    assert_eq!(
        [plain(&first[0]), plain(&second[0])],
        [PlainVerdict::Written, PlainVerdict::Written]
    );
}

/// As `while let Some(one) = stream.next().await { store.. }` over `buffer_unordered` does: the calls of the stream are
/// not polled while the body of the loop waits. Each keeps its slot for as long as its request may take.
#[tokio::test]
async fn calls_that_are_not_polled_any_more_stop_no_other() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let limit = Duration::from_secs(1);
    let store = fixture.builder().clock(clock.clone()).attempt_timeout(limit).build().unwrap();
    let (claims, late) = (other_claims(10), clock.now().plus(Duration::from_secs(20)));
    let _held = hanging_claims(&store, &fixture, &claims, late);
    let is_over = Cell::new(false);
    let call = async {
        let verdict = one_by(&store, &clock, claim(0)).await;
        is_over.set(true);
        verdict
    };
    let time = async {
        assert!(
            !pass_until(&clock, limit, || is_over.get()).await,
            "their requests may take so long"
        );
        assert!(pass_until(&clock, limit, || is_over.get()).await);
    };
    let (verdict, ()) = join(call, time).await;
    assert_eq!(plain(&verdict), PlainVerdict::Written);
}
