//! Lost and incomplete answers: the store recognises its own writes, and only these.

use std::time::Duration;

use crate::support::{
    Fault, Fixture, PlainVerdict, claimed, claims, completed, delete, key, one, owner, plain, put,
    released, soon, unknown, write,
};
use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store, StoreErrorKind, Write},
};
use lambda_idempotency_testkit::clock::ManualClock;
use serde_json::{Value, json};

/// Every kind of write, with the record that must exist before.
fn writes() -> Vec<(&'static str, Option<IdempotencyRecord>, Write)> {
    let (lapsed, mut renewed) = (released(8), claimed(7));
    renewed.lease_until = Some(Timestamp::from_millis(3_900_000_000_999));
    let held = Guard::Unchanged(RecordVersion::of(&claimed(7)));
    vec![
        ("renew", Some(claimed(7)), write(0, held, Some(renewed))),
        ("claim", None, write(0, Guard::Absent, Some(claimed(7)))),
        (
            "takeover",
            Some(lapsed.clone()),
            write(0, Guard::Unchanged(RecordVersion::of(&lapsed)), Some(claimed(7))),
        ),
        (
            "complete",
            Some(claimed(7)),
            write(0, Guard::OwnedBy(owner(7)), Some(completed(7, "[1]"))),
        ),
        ("release", Some(claimed(7)), write(0, Guard::OwnedBy(owner(7)), Some(released(7)))),
        ("delete", Some(claimed(7)), write(0, Guard::OwnedBy(owner(7)), None)),
    ]
}

/// Runs `write` over `before`, alone and in a batch, with `faults` for each.
async fn each_way(
    before: Option<&IdempotencyRecord>,
    write_0: &Write,
    faults: impl Fn(bool) -> Vec<Fault>,
    mut check: impl FnMut(&Fixture, PlainVerdict, &str),
) {
    for in_batch in [false, true] {
        let fixture = Fixture::start().await;
        let store = fixture.builder().attempt_timeout(Duration::from_millis(300)).build().unwrap();
        if let Some(before) = before {
            assert_eq!(
                plain(&one(&store, write(0, Guard::Absent, Some(before.clone()))).await),
                PlainVerdict::Written
            );
        }
        fixture.wire.take();
        fixture.wire.fault(faults(in_batch));
        let mut writes = vec![write_0.clone()];
        if in_batch {
            writes.extend((1..4).map(|n| write(n, Guard::Absent, Some(claimed(n as u128)))));
        }
        let verdicts = store.write(&writes, soon()).await;
        for other in &verdicts[1..] {
            assert_eq!(plain(other), PlainVerdict::Written);
        }
        check(&fixture, plain(&verdicts[0]), if in_batch { "in a batch" } else { "alone" });
    }
}

fn other_item() -> Value {
    json!({
        "id": {"S": "op#0"}, "status": {"S": "INPROGRESS"}, "expiration": {"N": "4000000000"},
        "in_progress_expiration": {"N": "3900000000123"},
        "owner": {"S": owner(99).to_string()},
    })
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_written() {
    for (name, before, write) in writes() {
        for fault in ["reset", "hang", "500", "503"] {
            let make = |_| {
                vec![match fault {
                    "reset" => Fault::LoseAnswer,
                    "hang" => Fault::Hang,
                    "500" => Fault::Status(500),
                    _ => Fault::Status(503),
                }]
            };
            each_way(before.as_ref(), &write, make, |_, verdict, way| {
                assert_eq!(verdict, PlainVerdict::Written, "{name} {way}, {fault}");
            })
            .await;
        }
    }
}

#[tokio::test]
async fn a_lost_answer_needs_no_read_if_the_condition_shows_the_item() {
    let (_, _, claim) = writes().remove(1);
    each_way(
        None,
        &claim,
        |_| vec![Fault::LoseAnswer],
        |fixture, verdict, way| {
            assert_eq!(verdict, PlainVerdict::Written);
            let expected: &[&str] = match way {
                "alone" => &["PutItem", "PutItem"],
                _ => &["BatchExecuteStatement", "BatchExecuteStatement", "BatchGetItem"],
            };
            assert_eq!(fixture.wire.operations(), expected);
        },
    )
    .await;
}

#[tokio::test]
async fn a_member_with_a_server_error_that_was_applied_is_written() {
    for (name, before, write) in writes() {
        let make = |in_batch| {
            let belie = Fault::Belie(vec![0, 2], "InternalServerError");
            vec![if in_batch { belie } else { Fault::Pass }]
        };
        each_way(before.as_ref(), &write, make, |_, verdict, way| {
            assert_eq!(verdict, PlainVerdict::Written, "{name} {way}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_request_that_was_lost_is_sent_again() {
    for (name, before, write) in writes() {
        let make = |_| vec![Fault::Instead(500, json!({})), Fault::Instead(503, json!({}))];
        each_way(before.as_ref(), &write, make, |fixture, verdict, way| {
            assert_eq!(verdict, PlainVerdict::Written, "{name} {way}");
            assert_eq!(fixture.item("op#0").is_some(), write.record.is_some());
        })
        .await;
    }
}

/// If another claim was written in between, it is returned, and not treated as our own.
#[tokio::test]
async fn a_record_of_another_owner_is_found() {
    for (name, before, write) in writes() {
        for applied in [true, false] {
            let make = |_| {
                let first =
                    if applied { Fault::LoseAnswer } else { Fault::Instead(500, json!({})) };
                vec![first, Fault::Before(Box::new(|db| put(db, &other_item())))]
            };
            each_way(before.as_ref(), &write, make, |_, verdict, way| {
                assert_eq!(
                    verdict,
                    PlainVerdict::Found(Some(claimed(99))),
                    "{name} {way}, {applied}"
                );
            })
            .await;
        }
    }
}

/// A record with our token is our write only if its state is the same: here it was completed in between.
#[tokio::test]
async fn a_record_with_our_token_and_another_state_is_found() {
    let (_, _, claim) = writes().remove(1);
    let make = |_| {
        let done = json!({
            "id": {"S": "op#0"}, "status": {"S": "COMPLETED"}, "expiration": {"N": "4000000000"},
            "owner": {"S": owner(7).to_string()}, "data": {"S": "1"},
        });
        vec![Fault::LoseAnswer, Fault::Before(Box::new(move |db| put(db, &done)))]
    };
    each_way(None, &claim, make, |_, verdict, way| {
        assert_eq!(verdict, PlainVerdict::Found(Some(completed(7, "1"))), "{way}");
    })
    .await;
}

/// A record without a token cannot be recognised as our own, even if all else is equal.
#[tokio::test]
async fn a_record_without_a_token_is_found() {
    let mut anonymous = claimed(7);
    anonymous.owner = None;
    let write = write(0, Guard::Absent, Some(anonymous.clone()));
    each_way(
        None,
        &write,
        |_| vec![Fault::LoseAnswer],
        |_, verdict, way| {
            assert_eq!(verdict, PlainVerdict::Found(Some(anonymous.clone())), "{way}");
        },
    )
    .await;
}

#[tokio::test]
async fn after_an_applied_write_was_deleted_the_current_state_is_returned() {
    for (name, before, write) in writes() {
        let make = |_| vec![Fault::LoseAnswer, Fault::Before(Box::new(|db| delete(db, "op#0")))];
        each_way(before.as_ref(), &write, make, |_, verdict, way| match write.guard {
            _ if write.record.is_none() => {
                assert_eq!(verdict, PlainVerdict::Written, "{name} {way}")
            }
            Guard::Absent => {
                assert_eq!(verdict, PlainVerdict::Written, "{name} {way}: written again")
            }
            _ => assert_eq!(verdict, PlainVerdict::Found(None), "{name} {way}"),
        })
        .await;
    }
}

#[tokio::test]
async fn a_write_that_may_have_been_applied_stays_so_after_later_errors() {
    let fixture = Fixture::start().await;
    for (second, kind) in [
        ("AccessDeniedException", StoreErrorKind::Denied),
        ("ValidationException", StoreErrorKind::Refused),
    ] {
        fixture.wire.fault([Fault::LoseAnswer, Fault::error(second)]);
        let verdict = one(&fixture.store(), write(0, Guard::Absent, Some(claimed(1)))).await;
        let error = unknown(verdict);
        assert!(error.may_have_applied(), "{error}");
        assert_eq!(error.kind(), kind, "the error names the last problem: {error}");
        delete(&fixture.db, key(0).as_str());
    }
    fixture.wire.fault([Fault::error("AccessDeniedException")]);
    let verdict = one(&fixture.store(), write(0, Guard::Absent, Some(claimed(1)))).await;
    let error = unknown(verdict);
    assert_eq!(error.kind(), StoreErrorKind::Denied);
    assert!(!error.may_have_applied());
}

#[tokio::test]
async fn a_write_without_an_answer_at_the_deadline_may_have_been_applied() {
    let fixture = Fixture::start().await;
    let clock = ManualClock::new(Timestamp::from_secs(1_000));
    let store = fixture.builder().clock(clock.clone()).build().unwrap();
    fixture.wire.fault([Fault::Hang]);
    let lasts = Duration::from_millis(200);
    let call_deadline = clock.now().plus(lasts);
    let writes = [write(0, Guard::Absent, Some(claimed(1)))];
    let passes = async {
        while fixture.item("op#0").is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // Then the store waits a little longer for an answer.
        loop {
            clock.advance(lasts);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let mut verdicts = tokio::select! {
        verdicts = store.write(&writes, call_deadline) => verdicts,
        () = passes => unreachable!("it does not end"),
    };
    let error = unknown(verdicts.pop().unwrap());
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.may_have_applied());
    assert!(fixture.item("op#0").is_some());
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
