//! The server with records that expire, and with its memory used up.

use std::time::Duration;

use lambda_idempotency_core::{
    admission::{Claim, Held, Settled, Settlement},
    clock::{Clock as _, SystemClock},
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store as _, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_redis::RedisStore;
use redis::Value;

use crate::{
    servers::Server,
    writes::{claim, claimed, complete, in_secs, key, one, owner, unknown},
};

/// When the server removes the record, in milliseconds since the epoch.
async fn removal(server: &Server, n: usize) -> i64 {
    let name = format!("idempotency:op#{n}");
    let Value::Int(at) = server.command(&["PEXPIRETIME", &name]).await else { panic!("a number") };
    at
}

fn millis(record: &IdempotencyRecord, add: u64) -> i64 {
    i64::try_from(record.expires_at.as_millis() + add).unwrap()
}

#[tokio::test]
async fn the_server_removes_a_record_a_margin_after_it_expires() {
    let server = Server::redis(&[]);
    let store = server.builder().expiry_margin(Duration::from_secs(90)).build().unwrap();
    let mut long = claimed(1);
    long.lease_until = Some(long.expires_at.plus(Duration::from_millis(5)));
    let mut done = IdempotencyRecord::new(Status::Completed, in_secs(60));
    let writes = [
        claim(1, 1),
        Write::new(key(2), Guard::Absent, Some(long.clone())),
        Write::new(key(3), Guard::Absent, Some(done.clone())),
    ];
    store.write(&writes, in_secs(60)).await;
    assert_eq!(removal(&server, 1).await, millis(writes[0].record.as_ref().unwrap(), 90_000));
    assert_eq!(removal(&server, 2).await, millis(&long, 90_005), "never while the key is held");
    assert_eq!(removal(&server, 3).await, millis(&done, 90_000));
    // Each write sets it anew: a renewal, a completion.
    done.expires_at = done.expires_at.plus(Duration::from_secs(7));
    let write = Write::new(key(1), Guard::OwnedBy(owner(1)), Some(done.clone()));
    store.write(&[write], in_secs(60)).await;
    assert_eq!(removal(&server, 1).await, millis(&done, 90_000));
}

/// A claim of a new key by this owner, as the engine makes it.
fn held(by: u128) -> Held {
    let now = SystemClock.now();
    let claim = Claim {
        owner: owner(by),
        lease_until: now.plus(Duration::from_secs(60)),
        retention: Duration::from_secs(3600),
        clock_skew: Duration::from_secs(1),
        fingerprint: None,
        application: None,
        provenance: None,
        payload: None,
    };
    claim.over(None, now).1
}

/// The write of the engine for this settlement.
fn settle(n: usize, held: &Held, settlement: &Settlement) -> Write {
    let (guard, record) = held.write(settlement, SystemClock.now());
    Write::new(key(n), guard, record)
}

/// While memory is used up, no key is claimed, and each settlement of what was claimed is written, as the engine sends it.
#[tokio::test]
async fn without_memory_nothing_is_claimed_and_everything_is_settled() {
    let server = Server::redis(&[]);
    let store = server.store();
    let (result, outbox) = (Some("\"done\"".into()), Some("[\"a message\"]".into()));
    let completes = Settlement::Complete { result: result.clone(), outbox: outbox.clone() };
    let renews =
        Settlement::Renew { lease_until: SystemClock.now().plus(Duration::from_secs(120)) };
    let settlements = [
        completes.clone(),
        Settlement::Commit { result: result.clone(), outbox },
        Settlement::FailPermanently { result, error_type: "Refused".into() },
        Settlement::Release { error_type: "Declined".into() },
        Settlement::Undo,
        Settlement::Decline,
        Settlement::Forget,
        Settlement::LeaveStanding,
        renews.clone(),
    ];
    let (steps, sent, gone) = (settlements.len(), settlements.len() + 1, settlements.len() + 2);
    let of: Vec<Held> = (0..gone).map(|n| held(n as u128 + 1)).collect();
    let claims = of.iter().enumerate();
    let claims =
        claims.map(|(n, held)| Write::new(key(n), Guard::Absent, Some(held.record.clone())));
    all_written(&store, &claims.collect::<Vec<_>>()).await;
    // The messages of this completion are to be marked as sent. Another attempt of the last key has failed.
    let completion = settle(sent, &of[sent], &completes);
    let released = settle(gone + 1, &held(99), &settlements[3]);
    let writes = [completion.clone(), Write { guard: Guard::Absent, ..released.clone() }];
    all_written(&store, &writes).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;

    let found = RecordVersion::of(released.record.as_ref().unwrap());
    let takeover = Write::new(released.key, Guard::Unchanged(found), Some(claimed(7)));
    // Without time for another request after the pause, the first answer counts.
    let long = Duration::from_secs(20);
    let once = server.builder().backoff(long, long).build().unwrap();
    for claim in [claim(gone + 2, 1), takeover] {
        let verdict = once.write(&[claim], in_secs(5)).await.pop().unwrap();
        let error = unknown(verdict, StoreErrorKind::Unavailable, false);
        assert!(error.to_string().contains("maxmemory"), "{error}");
    }

    // A delivery of what was completed is answered, and one of what another worker has is busy.
    for known in [sent, steps] {
        let verdict = store.write(&[claim(known, 77)], in_secs(60)).await.pop().unwrap();
        let Verdict::Found(Some(found)) = verdict else { panic!("{verdict:?}") };
        let is_completed = found.status == Status::Completed;
        assert_eq!(is_completed, known == sent);
    }

    let writes = settlements.iter().zip(&of).enumerate();
    let mut writes: Vec<Write> =
        writes.map(|(n, (settlement, held))| settle(n, held, settlement)).collect();
    let mut stepped = of[steps].clone();
    stepped.record.steps = Some("{\"charge\":1}".into());
    writes.push(settle(steps, &stepped, &renews));
    let completed = of[sent].with_record(completion.record.unwrap());
    writes.push(settle(sent, &completed, &Settlement::MarkSent));
    // A claim that the server has lost is completed all the same.
    let lost = held(100);
    match lost.settled(&completes, None, SystemClock.now()) {
        Settled::Again { guard, record } => writes.push(Write::new(key(gone), guard, Some(record))),
        other => panic!("{other:?}"),
    }
    all_written(&store, &writes).await;
    for write in writes {
        let found = store.read(std::slice::from_ref(&write.key), in_secs(60)).await.pop().unwrap();
        assert_eq!(found.unwrap(), write.record);
    }
    // A completion by another worker meanwhile is not written over.
    let late = complete(gone, 101);
    let late = Write { guard: Guard::Absent, ..late };
    let verdict = store.write(&[late], in_secs(60)).await.pop().unwrap();
    assert!(
        matches!(&verdict, Verdict::Found(Some(found)) if found.owner == Some(owner(100))),
        "{verdict:?}"
    );
}

async fn all_written(store: &RedisStore, writes: &[Write]) {
    // One by one, to see each that is refused.
    let mut refused = Vec::new();
    for write in writes {
        let verdict = store.write(std::slice::from_ref(write), in_secs(5)).await.pop();
        if !matches!(verdict, Some(Verdict::Written)) {
            refused.push((write, verdict));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
async fn keys_of_others_are_corrupt() {
    let server = Server::redis(&[]);
    let store = server.store();
    server.command(&["SET", "idempotency:op#1", "s3cr3t"]).await;
    server.command(&["HSET", "idempotency:op#2", "colour", "s3cr3t"]).await;
    server.command(&["SET", "idempotency:op#3", "s3cr3t"]).await;
    for n in [1, 2, 3] {
        let verdict = one(&store, claim(n, 1), in_secs(60)).await;
        let Verdict::Unknown(error) = verdict else { panic!("{verdict:?}") };
        let read = store.read(&[key(n)], in_secs(60)).await.pop().unwrap().unwrap_err();
        for error in [error, read] {
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
        }
    }
    assert_eq!(server.text(&["GET", "idempotency:op#1"]).await, "s3cr3t");
}
