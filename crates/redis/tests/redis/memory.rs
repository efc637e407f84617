//! What the server does with records that expire, and when its memory is used up.

use std::{cell::Cell, time::Duration};

use lambda_idempotency_core::{
    admission::{Admission, Claim, Held, Settled, Settlement, admit},
    clock::{Clock as _, SystemClock},
    record::{IdempotencyRecord, Status},
    store::{Guard, RecordVersion, Store as _, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_redis::RedisStore;
use lambda_idempotency_testkit::tcp::TcpFault;
use redis::Value;

use crate::{
    faults::{before, url},
    server::{Server, claim, claimed, complete, key, one, owner, soon, unknown, within, wrote},
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
#[ignore = "needs redis-server: bash tests/run redis"]
async fn the_server_removes_a_record_a_margin_after_it_expires() {
    let server = Server::start(&[]).await;
    let store = server.builder().expiry_margin(Duration::from_secs(90)).build().unwrap();
    let mut long = claimed(1);
    long.lease_until = Some(long.expires_at.plus(Duration::from_millis(5)));
    let mut done = IdempotencyRecord::new(Status::Completed, soon());
    let writes = [
        claim(1, 1),
        Write::new(key(2), Guard::Absent, Some(long.clone())),
        Write::new(key(3), Guard::Absent, Some(done.clone())),
    ];
    store.write(&writes, soon()).await;
    assert_eq!(removal(&server, 1).await, millis(writes[0].record.as_ref().unwrap(), 90_000));
    assert_eq!(removal(&server, 2).await, millis(&long, 90_005), "never while the key is held");
    assert_eq!(removal(&server, 3).await, millis(&done, 90_000));
    // Each write sets it anew: a renewal, a completion.
    done.expires_at = done.expires_at.plus(Duration::from_secs(7));
    let write = Write::new(key(1), Guard::OwnedBy(owner(1)), Some(done.clone()));
    store.write(&[write], soon()).await;
    assert_eq!(removal(&server, 1).await, millis(&done, 90_000));
}

#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn what_has_long_expired_is_gone() {
    let server = Server::start(&[]).await;
    let store = server.builder().expiry_margin(Duration::from_millis(100)).build().unwrap();
    let past = SystemClock.now().minus(Duration::from_secs(60));
    let record = IdempotencyRecord::new(Status::Completed, past);
    store.write(&[Write::new(key(1), Guard::Absent, Some(record))], soon()).await;
    assert_eq!(store.read(&[key(1)], soon()).await[0].as_ref().unwrap(), &None);
    wrote(&store, claim(1, 1)).await;
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
    match admit(&claim, None, now) {
        Admission::Try { held, .. } => held,
        other => panic!("{other:?}"),
    }
}

/// What the engine writes for this settlement.
fn settle(n: usize, held: &Held, settlement: &Settlement) -> Write {
    let (guard, record) = held.write(settlement, SystemClock.now());
    Write::new(key(n), guard, record)
}

/// While memory is used up, no key is claimed, and each settlement of what was claimed is written, as the engine sends it.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn without_memory_nothing_is_claimed_and_everything_is_settled() {
    let server = Server::start(&[]).await;
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
        let verdict = once.write(&[claim], within(5_000)).await.pop().unwrap();
        let error = unknown(verdict, StoreErrorKind::Unavailable, false);
        assert!(error.to_string().contains("maxmemory"), "{error}");
    }

    // A delivery of what was completed is answered, and one of what another worker has is busy.
    for known in [sent, steps] {
        let verdict = store.write(&[claim(known, 77)], soon()).await.pop().unwrap();
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
        let found = store.read(std::slice::from_ref(&write.key), soon()).await.pop().unwrap();
        assert_eq!(found.unwrap(), write.record);
    }
    // What another worker completed meanwhile is not written over.
    let late = complete(gone, 101, "\"late\"");
    let late = Write { guard: Guard::Absent, ..late };
    let verdict = store.write(&[late], soon()).await.pop().unwrap();
    assert!(
        matches!(&verdict, Verdict::Found(Some(found)) if found.owner == Some(owner(100))),
        "{verdict:?}"
    );
}

async fn all_written(store: &RedisStore, writes: &[Write]) {
    // One by one, to see each that is refused.
    let mut refused = Vec::new();
    for write in writes {
        let verdict = store.write(std::slice::from_ref(write), within(5_000)).await.pop();
        if !matches!(verdict, Some(Verdict::Written)) {
            refused.push((write, verdict));
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}

#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn keys_of_others_are_corrupt() {
    let server = Server::start(&[]).await;
    let store = server.store();
    server.command(&["SET", "idempotency:op#1", "s3cr3t"]).await;
    server.command(&["HSET", "idempotency:op#2", "colour", "s3cr3t"]).await;
    server.command(&["SET", "idempotency:op#3", "s3cr3t"]).await;
    for n in [1, 2, 3] {
        let verdict = store.write(&[claim(n, 1)], soon()).await.pop().unwrap();
        let Verdict::Unknown(error) = verdict else { panic!("{verdict:?}") };
        let read = store.read(&[key(n)], soon()).await.pop().unwrap().unwrap_err();
        for error in [error, read] {
            assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{error}");
            assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
        }
    }
    assert_eq!(server.text(&["GET", "idempotency:op#1"]).await, "s3cr3t");
}

/// Two primaries and a replica of neither: writes that wait for a replica are in doubt by their deadline, and are
/// written again, over themselves, until a replica has them.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_write_that_waits_for_replicas_counts_once_they_have_it() {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
    let store = primary.builder().wait_for_replicas(1, Duration::from_millis(50)).build().unwrap();
    unknown(one(&store, claim(1, 1), 1_000).await, StoreErrorKind::Unavailable, true);
    assert!(
        store.read(&[key(1)], soon()).await[0].as_ref().unwrap().is_some(),
        "the primary has it"
    );

    let writes = [claim(2, 2)];
    let call = store.write(&writes, soon());
    let follow = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        Server::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]).await
    };
    let (verdicts, replica) = tokio::join!(call, follow);
    assert!(matches!(verdicts[0], Verdict::Written), "{verdicts:?}");
    // `WAIT` counts the first replica of a server once everything was sent to it. Newer ones answer before they have read it.
    replica.wait_until(&["DBSIZE"], |size| *size == Value::Int(2)).await;

    // Meanwhile another worker took the key over: the write that was waited for is not there any more.
    drop(replica);
    let taken = claimed(9);
    let write = Write::new(key(2), Guard::OwnedBy(owner(2)), Some(claimed(2)));
    let other = Write::new(key(2), Guard::OwnedBy(owner(2)), Some(taken.clone()));
    let plain = primary.store();
    let writes = [write];
    let call = store.write(&writes, soon());
    let take = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        wrote(&plain, other).await;
    };
    let (verdicts, ()) = tokio::join!(call, take);
    assert!(matches!(&verdicts[0], Verdict::Found(Some(found)) if *found == taken), "{verdicts:?}");
}

/// A primary that becomes a replica ends each `WAIT` with an error: the write is in doubt, and is sent again until the
/// deadline of the call, as after any failover.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_failover_while_replicas_are_waited_for_is_an_outage_and_not_a_refusal() {
    let server = Server::start(&[]).await;
    let store = server.builder().wait_for_replicas(1, Duration::from_secs(20)).build().unwrap();
    let writes = [claim(1, 1)];
    let ended = Cell::new(false);
    let call = async {
        let verdicts = store.write(&writes, within(5_000)).await;
        ended.set(true);
        verdicts
    };
    let fail_over = async {
        while !server.text(&["INFO", "clients"]).await.contains("blocked_clients:1") {
            assert!(!ended.get(), "the call has ended, and it has not waited for replicas");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let port = server.ports[0].to_string();
        server.command(&["REPLICAOF", "127.0.0.1", &port]).await;
    };
    let (verdicts, ()) = tokio::join!(call, fail_over);
    unknown(verdicts.into_iter().next().unwrap(), StoreErrorKind::Unavailable, true);
}

/// A renewal and a completion that too few replicas confirm: the worker is told that they are in doubt, by the deadline
/// of the call, and sends them again in its next call. Nothing is written over what others wrote since.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn renewals_and_settlements_wait_for_replicas_like_claims() {
    let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
    let plain = primary.store();
    let first = claim(1, 1);
    all_written(&plain, std::slice::from_ref(&first)).await;
    let store = primary.builder().wait_for_replicas(1, Duration::from_millis(50)).build().unwrap();
    let renewal = renew(&first);
    let completion = complete(1, 1, "1");
    for write in [renewal, completion.clone()] {
        let call = store.write(std::slice::from_ref(&write), within(1_000));
        let mut verdicts = call.await;
        let verdict = verdicts.pop().unwrap();
        unknown(verdict, StoreErrorKind::Unavailable, true);
        let found = plain.read(&[key(1)], soon()).await.pop().unwrap().unwrap();
        assert_eq!(found, write.record, "the primary has it");
    }
    // The next call waits as well. With a deletion there is nothing to wait for: a failover that loses it leaves a claim
    // that ends by itself.
    in_doubt(&store, &completion).await;
    wrote(&plain, claim(2, 2)).await;
    let release = Write::new(key(2), Guard::OwnedBy(owner(2)), None);
    assert!(matches!(store.write(&[release], within(1_000)).await[0], Verdict::Written));
    // A release that is kept says whose claim it was by its last owner.
    let claimed = held(3);
    let claim = Write::new(key(3), Guard::Absent, Some(claimed.record.clone()));
    all_written(&plain, &[claim]).await;
    let release = settle(3, &claimed, &Settlement::Release { error_type: "Declined".into() });
    in_doubt(&store, &release).await;
    in_doubt(&store, &release).await;
}

/// What a failover has lost is written again, and what is written over itself needs no memory.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_write_that_is_lost_while_it_waits_for_replicas_is_written_again() {
    for is_lost in [true, false] {
        let primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
        let store = primary.builder().wait_for_replicas(1, Duration::from_millis(50));
        let store = store.build().unwrap();
        let writes = [claim(1, 1)];
        let call = store.write(&writes, soon());
        let follow = async {
            primary.wait_until(&["DBSIZE"], |size| *size == Value::Int(1)).await;
            if is_lost {
                primary.command(&["FLUSHALL"]).await;
                // Before there is a replica: one that copies the emptied primary would confirm the first write.
                primary.wait_until(&["DBSIZE"], |size| *size == Value::Int(1)).await;
            } else {
                primary.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
            }
            Server::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]).await
        };
        let (verdicts, _replica) = tokio::join!(call, follow);
        assert!(matches!(verdicts[0], Verdict::Written), "{verdicts:?}");
        let found = store.read(&[key(1)], soon()).await.pop().unwrap().unwrap();
        assert_eq!(found, writes[0].record);
    }
}

/// The worker finds its own write, and no replica has it.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_write_whose_answer_was_lost_is_confirmed_by_replicas_before_it_counts() {
    let primary = Server::start(&[]).await;
    let proxy = before(&primary).await;
    let within_50 = Duration::from_millis(50);
    let store = RedisStore::builder(&url(&proxy)).wait_for_replicas(1, within_50).build().unwrap();
    store.check().await.unwrap();
    proxy.faults().add(TcpFault::lose_answer().times(1));
    in_doubt(&store, &claim(1, 1)).await;
}

/// A replica stops, and a worker's claim and completion stay in doubt. When the worker repeats them, they count only once
/// the replica has them: it is promoted then, and answers with the completion.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_write_in_doubt_that_is_repeated_is_confirmed_by_replicas_before_it_counts() {
    let mut primary = Server::start(&["--repl-diskless-sync-delay", "0"]).await;
    let replica = Server::start(&["--replicaof", "127.0.0.1", &primary.port.to_string()]).await;
    primary.wait_until(&["WAIT", "1", "100"], |answer| *answer == Value::Int(1)).await;
    let new_store = || {
        let within = Duration::from_millis(50);
        primary.builder().wait_for_replicas(1, within).build().unwrap()
    };
    let first = claim(1, 1);
    let renewal = renew(&first);
    for (write, again) in [
        (first, claim(1, 1)),
        (renewal, claim(1, 1)),
        (complete(1, 1, "1"), {
            // Made a moment later, with another expiry.
            let mut later = complete(1, 1, "1");
            let record = later.record.as_mut().unwrap();
            record.expires_at = record.expires_at.plus(Duration::from_secs(5));
            later
        }),
    ] {
        replica.signal("STOP");
        in_doubt(&new_store(), &write).await;
        // By the same connection, and by a new one, which has written nothing for which it could wait.
        let store = new_store();
        in_doubt(&store, &again).await;
        in_doubt(&store, &again).await;
        // Another worker is told what is there.
        let other = store.write(&[claim(1, 2)], within(1_000)).await.pop().unwrap();
        assert!(matches!(&other, Verdict::Found(found) if *found == write.record), "{other:?}");
        replica.signal("CONT");
        let again = store.write(std::slice::from_ref(&again), soon()).await.pop().unwrap();
        let Verdict::Found(found) = again else { panic!("{again:?}") };
        assert_eq!(found, write.record, "it is there, and unchanged");
        let name = "idempotency:op#1";
        assert_eq!(replica.text(&["GET", name]).await, primary.text(&["GET", name]).await);
    }
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]).await;
    let found = replica.store().write(&[claim(1, 3)], soon()).await.pop().unwrap();
    let Verdict::Found(Some(found)) = found else { panic!("{found:?}") };
    assert_eq!((found.status, found.owner), (Status::Completed, Some(owner(1))));
}

/// A renewal of this claim.
fn renew(claim: &Write) -> Write {
    let mut record = claim.record.clone().unwrap();
    let guard = Guard::Unchanged(RecordVersion::of(&record));
    record.lease_until = Some(within(120_000));
    Write::new(claim.key.clone(), guard, Some(record))
}

/// Writes, while no replica confirms it.
async fn in_doubt(store: &RedisStore, write: &Write) {
    let verdict = store.write(std::slice::from_ref(write), within(1_000)).await.pop().unwrap();
    unknown(verdict, StoreErrorKind::Unavailable, true);
}
