//! Servers that are killed, restarted, suspended, cut off and slowed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    key::Key,
    store::{Guard, RecordVersion, Store as _, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_redis::{RedisStore, RedisStoreBuilder};
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};
use redis::Value;

use crate::{
    servers::{PATIENCE, Server},
    writes::{claim, claimed, complete, in_secs, key, one, owner, unknown, within, written, wrote},
};

fn impatient(url: &str) -> RedisStoreBuilder {
    RedisStore::builder(url)
        .attempt_timeout(Duration::from_millis(300))
        .connect_timeout(Duration::from_millis(300))
        .backoff(Duration::from_millis(5), Duration::from_millis(50))
}

/// A proxy before this server.
pub(crate) async fn before(server: &Server) -> TcpProxy {
    TcpProxy::start(([127, 0, 0, 1], server.port).into()).await.unwrap()
}

pub(crate) fn url(proxy: &TcpProxy) -> String {
    format!("redis://{}", proxy.address())
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable_and_nothing_is_in_doubt() {
    let mut server = Server::redis(&[]);
    let store = impatient(&server.url()).build().unwrap();
    server.kill();
    unknown(one(&store, claim(1, 1), within(200)).await, StoreErrorKind::Unavailable, false);
    let error = store.read(&[key(1)], within(200)).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn scripts_that_were_removed_are_loaded_again() {
    let server = Server::redis(&[]);
    let store = server.store();
    wrote(&store, claim(1, 1)).await;
    server.command(&["SCRIPT", "FLUSH"]).await;
    wrote(&store, complete(1, 1)).await;
    server.command(&["SCRIPT", "FLUSH"]).await;
    assert!(store.read(&[key(1)], in_secs(60)).await[0].as_ref().unwrap().is_some());
}

/// Each is recognised when it is sent again: a claim, a takeover, a deletion.
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_written_once() {
    let server = Server::redis(&[]);
    for fault in [TcpFault::swallow_answers(), TcpFault::lose_answer()] {
        let proxy = before(&server).await;
        let store = impatient(&url(&proxy)).build().unwrap();
        store.check().await.unwrap();
        let first = claim(1, 1);
        let seen = RecordVersion::of(first.record.as_ref().unwrap());
        let takeover = Write::new(key(1), Guard::Unchanged(seen), Some(claimed(2)));
        let deletion = Write::new(key(1), Guard::OwnedBy(owner(2)), None);
        for write in [first, takeover, deletion] {
            let holder = write.record.as_ref().and_then(|record| record.owner);
            let begins = holder.map(|owner| format!("INPROGRESS {owner} "));
            proxy.faults().add(fault.clone());
            let heal = async {
                let is_there = |answer: &Value| match (answer, &begins) {
                    (Value::BulkString(text), Some(begins)) => text.starts_with(begins.as_bytes()),
                    (answer, begins) => *answer == Value::Nil && begins.is_none(),
                };
                server.wait_until(&["GET", "idempotency:op#1"], is_there).await;
                proxy.faults().clear();
            };
            written(&tokio::join!(one(&store, write, in_secs(60)), heal).0);
        }
    }
}

#[tokio::test]
async fn a_write_whose_answer_stays_lost_is_in_doubt_by_its_deadline() {
    let server = Server::redis(&[]);
    let proxy = before(&server).await;
    let store = impatient(&url(&proxy)).build().unwrap();
    store.check().await.unwrap();
    proxy.faults().add(TcpFault::swallow_answers());
    let call = one(&store, claim(1, 1), in_secs(2));
    let verdict = tokio::time::timeout(PATIENCE, call).await.expect("it ends by its deadline");
    unknown(verdict, StoreErrorKind::Unavailable, true);
    assert!(server.store().read(&[key(1)], in_secs(60)).await[0].as_ref().unwrap().is_some());
}

/// A pause before a second request for which no call here has the time.
pub(crate) const NO_SECOND: Duration = Duration::from_secs(3600);

/// The machine's clock, some time ahead.
#[derive(Clone, Default)]
pub(crate) struct Ahead(pub(crate) Arc<AtomicU64>);

impl Clock for Ahead {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(Duration::from_millis(self.0.load(Ordering::Relaxed)))
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(duration)
    }
}

/// After a freeze in which the server has closed the connection, the first write is sent once, on a new one.
#[tokio::test]
async fn after_a_freeze_a_connection_is_tried_before_it_is_used() {
    let server = Server::redis(&[]);
    let clock = Ahead::default();
    let store = server.builder().backoff(NO_SECOND, NO_SECOND).clock(clock.clone());
    let store = store.build().unwrap();
    let pings = async || {
        let stats = server.text(&["INFO", "commandstats"]).await;
        stats.lines().filter(|line| line.starts_with("cmdstat_ping:calls=1,")).count()
    };
    wrote(&store, claim(1, 1)).await;
    assert_eq!(pings().await, 0, "a connection in use is not tried");
    clock.0.store(11_000, Ordering::Relaxed);
    wrote(&store, claim(2, 1)).await;
    assert_eq!(pings().await, 1);
    clock.0.store(60_000, Ordering::Relaxed);
    server.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    let verdict = one(&store, claim(3, 1), in_secs(120)).await;
    assert!(matches!(verdict, Verdict::Written), "it was sent on the old connection: {verdict:?}");
}

#[tokio::test]
async fn a_suspended_server_delays_calls_and_loses_nothing() {
    let server = Server::redis(&[]);
    let store = impatient(&server.url()).build().unwrap();
    store.check().await.unwrap();
    server.signal("STOP");
    let resume = async {
        tokio::time::sleep(Duration::from_millis(700)).await;
        server.signal("CONT");
    };
    let (verdict, ()) = tokio::join!(one(&store, claim(1, 1), in_secs(60)), resume);
    written(&verdict);
    assert!(matches!(one(&store, claim(1, 2), in_secs(60)).await, Verdict::Found(Some(_))));
}

/// Calls that are dropped leave their answers to the next call, which does not take them for its own.
#[tokio::test]
async fn a_call_that_is_dropped_does_not_disturb_the_next() {
    let server = Server::redis(&[]);
    let store = server.store();
    store.check().await.unwrap();
    for n in 0..20 {
        let writes = [claim(2 * n, 1)];
        let mut dropped = std::pin::pin!(store.write(&writes, in_secs(60)));
        // It sends its request, and does not wait for the answer.
        let polled = std::future::poll_fn(|context| Poll::Ready(dropped.as_mut().poll(context)));
        assert!(polled.await.is_pending());
        let keys = [Key::from_text("missing"), key(2 * n)];
        let read = store.read(&keys, in_secs(60)).await;
        assert_eq!(read[0].as_ref().unwrap(), &None);
        assert_eq!(read[1].as_ref().unwrap().as_ref().unwrap().owner, Some(owner(1)));
        wrote(&store, claim(2 * n + 1, 1)).await;
    }
}

/// A server whose answers come late is no server that does not answer: each try has twice the time of the one before.
#[tokio::test]
async fn a_connection_that_takes_longer_than_its_limit_is_made() {
    let server = Server::redis(&[]);
    let proxy = before(&server).await;
    let store = RedisStore::builder(&url(&proxy)).connect_timeout(Duration::from_millis(100));
    let store = store.build().unwrap();
    proxy.faults().add(TcpFault::delay_answers(Duration::from_millis(350)));
    wrote(&store, claim(1, 1)).await;
    wrote(&store, complete(1, 1)).await;
}
