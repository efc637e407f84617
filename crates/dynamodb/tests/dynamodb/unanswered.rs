//! Incomplete answers: members of a batch without an answer, failed conditions without the item, and a
//! lost answer followed by an error that says that nothing was applied.

use std::time::Duration;

use crate::support::{
    Fault, Fixture, PlainVerdict, claimed, claims, completed, key, one, owner, plain, released,
    soon, unknown, write,
};
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, StoreErrorKind, Write},
};
use lambda_idempotency_testkit::clock::ManualClock;

/// Whether answers contain the existing item: the embedded server sends it, the service may leave it out.
const WITH_AND_WITHOUT_ITEMS: [bool; 2] = [true, false];

async fn fixture(items: bool) -> Fixture {
    let fixture = Fixture::start().await;
    if !items {
        fixture.wire.withhold_items();
    }
    fixture
}

async fn stored(fixture: &Fixture, n: usize) -> Option<IdempotencyRecord> {
    fixture.store().read(&[key(n)], soon()).await.pop().unwrap().unwrap()
}

#[tokio::test]
async fn a_member_without_an_answer_is_sent_again() {
    let fixture = Fixture::start().await;
    fixture.wire.fault([Fault::Only(2)]);
    for verdict in fixture.store().write(&claims(5), soon()).await {
        assert_eq!(plain(&verdict), PlainVerdict::Written);
    }
    for n in 0..5 {
        assert_eq!(stored(&fixture, n).await, Some(claimed(n as u128)), "of member {n}");
    }
}

#[tokio::test]
async fn a_member_without_an_answer_may_have_been_applied() {
    let fixture = Fixture::start().await;
    fixture.wire.fault([Fault::Only(2), Fault::error("AccessDeniedException")]);
    let mut verdicts = fixture.store().write(&claims(5), soon()).await;
    for verdict in verdicts.split_off(2) {
        let error = unknown(verdict);
        assert_eq!(error.kind(), StoreErrorKind::Denied);
        assert!(error.may_have_applied(), "{error}");
    }
    assert!(verdicts.iter().all(|verdict| plain(verdict) == PlainVerdict::Written));
}

#[tokio::test]
async fn a_write_that_may_have_been_applied_is_recognised_after_throttling() {
    for count in [1, 3] {
        let fixture = Fixture::start().await;
        let throttled = || Fault::error("ThrottlingException");
        fixture.wire.fault([Fault::LoseAnswer, throttled(), throttled()]);
        for verdict in fixture.store().write(&claims(count), soon()).await {
            assert_eq!(
                plain(&verdict),
                PlainVerdict::Written,
                "the store recognises its own write"
            );
        }
    }
}

#[tokio::test]
async fn a_member_that_may_have_been_applied_is_recognised_after_throttling() {
    let fixture = Fixture::start().await;
    fixture.wire.fault([
        Fault::Belie(vec![0, 2], "InternalServerError"),
        Fault::Refuse(vec![0, 1], "ThrottlingError"),
    ]);
    for verdict in fixture.store().write(&claims(4), soon()).await {
        assert_eq!(plain(&verdict), PlainVerdict::Written, "the store recognises its own write");
    }
}

#[tokio::test]
async fn a_write_that_may_have_been_applied_stays_so_under_throttling_until_the_deadline() {
    for count in [1, 3] {
        let fixture = Fixture::start().await;
        let throttled = (0..500).map(|_| Fault::error("ThrottlingException"));
        fixture.wire.fault([Fault::LoseAnswer].into_iter().chain(throttled));
        let clock = ManualClock::new(Timestamp::from_secs(1_000));
        let store = fixture.builder().clock(clock.clone()).build().unwrap();
        let lasts = Duration::from_secs(3_600);
        let (writes, call_deadline) = (claims(count), clock.now().plus(lasts));
        let passes = async {
            let mut requests = 0;
            loop {
                tokio::time::sleep(Duration::from_millis(1)).await;
                requests += fixture.wire.operations().len();
                // The pause before the second request is a millisecond.
                clock.advance(if requests < 2 { Duration::from_millis(1) } else { lasts });
            }
        };
        let verdicts = tokio::select! {
            verdicts = store.write(&writes, call_deadline) => verdicts,
            () = passes => unreachable!("it does not end"),
        };
        for verdict in verdicts {
            let error = unknown(verdict);
            assert_eq!(error.kind(), StoreErrorKind::Throttled);
            assert!(error.may_have_applied(), "{error}");
        }
    }
}

/// Writes of owner 7 to different keys, after another owner has taken the keys over.
fn fenced() -> Vec<Write> {
    let seen = || Guard::Unchanged(RecordVersion::of(&released(8)));
    vec![
        write(0, Guard::OwnedBy(owner(7)), Some(completed(7, "[1]"))),
        write(1, Guard::OwnedBy(owner(7)), Some(released(7))),
        write(2, Guard::OwnedBy(owner(7)), None),
        write(3, seen(), Some(claimed(7))),
        write(4, seen(), None),
        write(5, Guard::Absent, Some(claimed(7))),
    ]
}

#[tokio::test]
async fn a_fenced_member_finds_the_record_of_the_other() {
    for items in WITH_AND_WITHOUT_ITEMS {
        let fixture = fixture(items).await;
        let others = (0..6).map(|n| write(n, Guard::Absent, Some(claimed(9))));
        fixture.store().write(&others.collect::<Vec<_>>(), soon()).await;
        let verdicts = fixture.store().write(&fenced(), soon()).await;
        for (n, verdict) in verdicts.iter().enumerate() {
            let found = PlainVerdict::Found(Some(claimed(9)));
            assert_eq!(plain(verdict), found, "member {n}, items: {items}");
            assert_eq!(stored(&fixture, n).await, Some(claimed(9)), "member {n}");
        }
    }
}

#[tokio::test]
async fn a_member_whose_record_was_deleted_finds_nothing() {
    for items in WITH_AND_WITHOUT_ITEMS {
        let fixture = fixture(items).await;
        let verdicts = fixture.store().write(&fenced(), soon()).await;
        let written = [false, false, true, false, true, true];
        for ((n, verdict), written) in verdicts.iter().enumerate().zip(written) {
            let expected = if written { PlainVerdict::Written } else { PlainVerdict::Found(None) };
            assert_eq!(plain(verdict), expected, "member {n}, items: {items}");
        }
    }
}

/// A single write has the same answer as the members of a batch.
#[tokio::test]
async fn a_fenced_write_finds_the_record_of_the_other() {
    let fixture = Fixture::start().await;
    for (n, fenced) in fenced().into_iter().enumerate() {
        one(&fixture.store(), write(n, Guard::Absent, Some(claimed(9)))).await;
        let verdict = one(&fixture.store(), fenced).await;
        assert_eq!(plain(&verdict), PlainVerdict::Found(Some(claimed(9))), "write {n}");
    }
}
