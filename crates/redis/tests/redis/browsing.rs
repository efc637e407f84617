//! Listing records while other records come and go.

use std::{
    collections::HashMap,
    future::pending,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lambda_idempotency_core::{
    browse::{Browse as _, Cursor, Left},
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    outbox::{MemorySender, Relay},
    record::{IdempotencyRecord, Provenance},
    store::{Guard, RecordVersion, Store as _, StoreError, StoreErrorKind, Write},
};
use lambda_idempotency_redis::{RedisStore, RedisStoreBuilder};
use redis::Value;

use crate::{
    cluster::Cluster,
    servers::Server,
    writes::{claim, claimed, completed, in_secs, key, one, owner, unknown, written, wrote},
};

/// A page that ends in the middle of a step of `SCAN`, and then the records of that page are deleted: the server's next
/// step would begin with other records.
#[tokio::test]
async fn each_record_that_stays_is_listed_once_while_others_are_deleted() {
    let server = Server::redis(&[]);
    let store = filled(&server.builder()).await;
    are_all(&pages(&store, None, Some(&server)).await.unwrap());
}

/// How many records a test lists.
const ALL: usize = 3000;

async fn filled(builder: &RedisStoreBuilder) -> RedisStore {
    let store = builder.clone().build().unwrap();
    let writes: Vec<_> = (0..ALL).map(|n| claim(n, 1)).collect();
    store.write(&writes, in_secs(60)).await.iter().for_each(written);
    store
}

#[track_caller]
fn are_all(listed: &HashMap<String, usize>) {
    assert_eq!(listed.len(), ALL, "some were never listed");
    assert!(listed.values().all(|&times| times == 1), "some were listed twice");
}

/// How often each record is on the pages from this one on, or the error that ended the listing. With a server, the records of
/// each page are deleted there.
async fn pages(
    store: &RedisStore,
    mut next: Option<Cursor>,
    deleting: Option<&Server>,
) -> Result<HashMap<String, usize>, StoreError> {
    let mut times_listed = HashMap::new();
    loop {
        let page = store.page(next.as_ref(), LIMIT, in_secs(60)).await?;
        assert!(page.items.len() <= LIMIT.get(), "{}", page.items.len());
        let mut delete = vec!["DEL".to_owned()];
        for (key, record) in page.items {
            record?;
            delete.push(format!("idempotency:{}", key.as_str()));
            *times_listed.entry(key.as_str().to_owned()).or_default() += 1;
        }
        if let Some(server) = deleting.filter(|_| delete.len() > 1) {
            server.command(&delete.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
        next = page.next;
        if next.is_none() {
            return Ok(times_listed);
        }
    }
}

const LIMIT: NonZeroUsize = NonZeroUsize::new(100).unwrap();

fn is_said_plainly(error: &StoreError) {
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("list them again from the beginning"), "{error}");
}

/// A server has its keys in another order than the one that it replaces, so the steps of the one count nothing at the
/// other: a listing that went on would miss records.
#[tokio::test]
async fn a_listing_that_a_failover_interrupts_ends_with_an_error_and_misses_nothing_anew() {
    let mut cluster = Cluster::with_replicas(1).await;
    let half = Duration::from_millis(500);
    let builder = cluster.primaries[1].builder().attempt_timeout(half).connect_timeout(half);
    let store = filled(&builder).await;
    cluster.primaries[0].wait_until(&["WAIT", "1", "1000"], |a| *a == Value::Int(1)).await;
    let first = store.page(None, LIMIT, in_secs(60)).await.unwrap();
    cluster.primaries[0].kill();
    is_said_plainly(&pages(&store, first.next, None).await.unwrap_err());
    are_all(&pages(&store, None, None).await.unwrap());
}

#[tokio::test]
async fn a_listing_ends_with_an_error_if_the_server_is_restarted_in_between() {
    let mut server = Server::redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = filled(&server.builder()).await;
    let first = store.page(None, LIMIT, in_secs(60)).await.unwrap();
    server.kill();
    server.run();
    is_said_plainly(&pages(&store, first.next, None).await.unwrap_err());
    are_all(&pages(&store, None, None).await.unwrap());
}

/// Steps of 1 MB: a page of what is left reads none of them, and one of all records ends before it is too large. A field
/// of a later version stays in its record.
#[tokio::test]
async fn pages_end_at_some_megabytes_and_read_nothing_that_nobody_needs() {
    const ALL: usize = 20;
    let server = Server::redis(&[]);
    let store = server.store();
    let mut record = completed(1);
    record.steps = Some("x".repeat(1024 * 1024).into());
    record.outbox = Some(r#"[{"to":"q","body":"1"}]"#.into());
    for n in 0..ALL {
        wrote(&store, Write::new(key(n), Guard::Absent, Some(record.clone()))).await;
    }
    server.command(&["APPEND", "idempotency:op#0", "colour 4 blue\n"]).await;
    let page = store.left(Left::Messages, None, LIMIT, in_secs(60)).await.unwrap();
    let steps = page.items.iter().map(|(_, item)| item.as_ref().unwrap().steps.is_some());
    assert_eq!(steps.collect::<Vec<_>>(), [false; ALL]);
    let sent = [(key(0), RecordVersion::of(&record))];
    store.mark_sent(&sent, in_secs(60)).await.pop().unwrap().unwrap();
    let text = server.text(&["GET", "idempotency:op#0"]).await;
    assert!(text.ends_with("\ncolour 4 blue\n") && !text.contains("outbox"), "the rest stays");
    let Value::Int(removal) = server.command(&["PTTL", "idempotency:op#0"]).await else { panic!() };
    assert!(removal > 0, "{removal}");
    let first = store.page(None, LIMIT, in_secs(60)).await.unwrap();
    assert!(first.items.len() < ALL, "{} of 1 MB each", first.items.len());
    let listed = pages(&store, None, None).await.unwrap();
    assert!(listed.len() == ALL && listed.values().all(|times| *times == 1), "{listed:?}");
}

/// The time goes on by a millisecond whenever somebody asks, and waits for nothing.
#[derive(Clone)]
struct Ticking(Arc<AtomicU64>);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(pending())
    }
}

/// A call has too little time for all keys of a server on which others have many: the next one goes on where it ended, and
/// so does a relay whose time ends.
#[tokio::test]
async fn a_listing_among_many_keys_of_others_comes_to_its_end_in_several_calls() {
    let server = Server::redis(&[]);
    let others = "for n = 1, 40000 do redis.call('SET', 'other:' .. n, 'x') end";
    server.command(&["EVAL", others, "0"]).await;
    let mut record = completed(1);
    record.outbox = Some(r#"[{"to":"q","body":"1"}]"#.into());
    wrote(&server.store(), Write::new(key(1), Guard::Absent, Some(record))).await;
    let clock = Ticking(Arc::new(AtomicU64::new(SystemClock.now().as_millis())));
    let store = Arc::new(server.builder().clock(clock.clone()).build().unwrap());
    store.check().await.unwrap();
    let until = || clock.now().plus(Duration::from_millis(200));
    let (mut calls, mut listed, mut next) = (0, Vec::new(), None);
    while calls == 0 || next.is_some() {
        let deadline = until();
        let page = store.page(next.as_ref(), LIMIT, deadline).await.unwrap();
        assert!(clock.now() < deadline, "it does not wait until its last request is cut off");
        listed.extend(page.items.into_iter().map(|(key, _)| key));
        (calls, next) = (calls + 1, page.next);
    }
    assert_eq!(listed, [key(1)], "in {calls} calls");
    assert!(calls > 2, "each has time for a part only");
    let sender = Arc::new(MemorySender::new());
    let relay = Relay::new(Arc::clone(&store), Arc::clone(&sender)).with_clock(clock.clone());
    let (mut runs, mut next) = (0, None);
    while runs == 0 || next.is_some() {
        let relayed = relay.run(next.as_ref(), until()).await.unwrap();
        (runs, next) = (runs + 1, relayed.swept.next);
    }
    assert!(runs > 2 && !sender.sent().is_empty(), "{runs} runs");
}

/// A renewal, a release and a completion, and the mark that messages are sent. A takeover begins anew.
#[tokio::test]
async fn a_write_leaves_what_another_version_has_stored() {
    const MORE: &str = r#"{"claimed_at":1700000000000,"region":"eu"}"#;
    let server = Server::redis(&[]);
    let store = server.store();
    let write = async |guard, record: &IdempotencyRecord| {
        wrote(&store, Write::new(key(1), guard, Some(record.clone()))).await;
        server.text(&["GET", "idempotency:op#1"]).await
    };
    let mut held = claimed(1);
    held.provenance = Provenance::from_json(MORE);
    let text = write(Guard::Absent, &held).await;
    let more = format!("colour 5 b u\ne\nprovenance {} {MORE}\n", MORE.len());
    let head = text.lines().next().unwrap();
    server.command(&["SET", "idempotency:op#1", &format!("{head}\n{more}")]).await;
    let mut renewed = held.clone();
    renewed.lease_until = Some(in_secs(60));
    renewed.steps = Some("[1]".into());
    let text = write(Guard::Unchanged(RecordVersion::of(&held)), &renewed).await;
    assert!(text.ends_with(&format!("\nsteps 3 [1]\n{more}")), "{text}");
    let mut released = renewed.clone();
    released.last_owner = released.owner.take();
    let text = write(Guard::OwnedBy(owner(1)), &released).await;
    assert!(text.ends_with(&more), "{text}");
    let mut done = released.clone();
    done.provenance = None;
    let text = write(Guard::Unchanged(RecordVersion::of(&released)), &done).await;
    assert!(text.contains("\ncolour 5 b u\ne\n") && !text.contains("provenance"), "{text}");
    let text = write(Guard::Unchanged(RecordVersion::of(&done)), &claimed(2)).await;
    assert!(!text.contains("colour"), "{text}");
}

/// The renewal of such a record lost its fields. Nothing of it is changed, whichever script meets it.
#[tokio::test]
async fn a_record_whose_fields_cannot_be_read_is_corrupt_for_every_write() {
    let server = Server::redis(&[]);
    let store = server.store();
    let held = claimed(1);
    let (mut renewed, mut released) = (held.clone(), held.clone());
    renewed.lease_until = Some(in_secs(90));
    let mut stepped = renewed.clone();
    stepped.steps = Some("[1]".into());
    released.last_owner = released.owner.take();
    let seen = RecordVersion::of(&held);
    let unchanged = || Guard::Unchanged(seen.clone());
    let writes = [
        (Guard::Absent, claimed(2)),
        (unchanged(), renewed),
        (unchanged(), stepped),
        (unchanged(), released.clone()),
        (Guard::OwnedBy(owner(1)), released),
        (Guard::OwnedBy(owner(1)), completed(1)),
    ];
    wrote(&store, Write::new(key(1), Guard::Absent, Some(held))).await;
    let text = server.text(&["GET", "idempotency:op#1"]).await;
    let (head, _) = text.split_once('\n').unwrap();
    let unfit = [
        "result",
        "result 9 {}\n",
        "result 1 {}\n",
        "result 2 {}",
        "result 2\t{}\n",
        "result +2 {}\n",
        "re\tsult 2 {}\n",
        " 2 {}\n",
        "result 99999999999999999999 {}\n",
    ];
    let kind = Some(StoreErrorKind::Corrupt);
    for stored in
        unfit.map(|fields| format!("{head}\n{fields}")).into_iter().chain([head.to_owned()])
    {
        server.command(&["SET", "idempotency:op#1", &stored]).await;
        for (guard, record) in &writes {
            let write = Write::new(key(1), guard.clone(), Some(record.clone()));
            unknown(one(&store, write, in_secs(60)).await, StoreErrorKind::Corrupt, false);
        }
        let marked = store.mark_sent(&[(key(1), seen.clone())], in_secs(60)).await.pop().unwrap();
        // Without the end of its first line it is not what was seen, and is left alone.
        assert_eq!(marked.err().map(|error| error.kind()), kind.filter(|_| stored != head));
        let read = store.read(&[key(1)], in_secs(60)).await.pop().unwrap();
        let listed = store.page(None, LIMIT, in_secs(60)).await.unwrap().items.pop().unwrap().1;
        for error in [read.unwrap_err(), listed.unwrap_err()] {
            assert_eq!(Some(error.kind()), kind, "{stored:?}");
        }
        assert_eq!(server.text(&["GET", "idempotency:op#1"]).await, stored);
    }
}
