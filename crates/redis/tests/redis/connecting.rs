//! Calls that connect beside each other, some of which their program does not poll any more: those of a stream, while the
//! body of a loop over it makes a call of its own.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};

use futures_util::future::join_all;
use lambda_idempotency_core::store::{Store as _, Verdict};
use lambda_idempotency_redis::RedisStore;
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};

use crate::{
    faults::{Ahead, NO_SECOND, before, url},
    servers::Server,
    writes::{claim, in_secs, key, one, owner, written},
};

/// Polls the call, which goes on waiting.
async fn poll(call: &mut Pin<&mut impl Future>) {
    poll_fn(|context| {
        assert!(call.as_mut().poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Polls the call until it has sent so many requests through the proxy, and not any more. No answer comes.
async fn poll_until_sent(call: &mut Pin<&mut impl Future>, proxy: &TcpProxy, requests: u64) {
    while proxy.requests() < requests {
        poll(call).await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A store before which is a proxy, and which tries long.
fn patient(proxy: &TcpProxy) -> RedisStore {
    let long = Duration::from_secs(20);
    RedisStore::builder(&url(proxy)).attempt_timeout(long).connect_timeout(long).build().unwrap()
}

#[tokio::test]
async fn a_call_that_connects_and_is_not_polled_any_more_stops_no_other() {
    let server = Server::redis(&[]);
    // It begins to connect.
    let store = server.store();
    let mut first = std::pin::pin!(one(&store, claim(1, 1), in_secs(60)));
    poll(&mut first).await;
    written(&one(&store, claim(2, 1), in_secs(10)).await);
    written(&first.await);

    // It logs in.
    let proxy = before(&server).await;
    let store = patient(&proxy);
    server.signal("STOP");
    let mut first = std::pin::pin!(one(&store, claim(3, 1), in_secs(60)));
    poll_until_sent(&mut first, &proxy, 1).await;
    server.signal("CONT");
    written(&one(&store, claim(4, 1), in_secs(10)).await);
    written(&first.await);
    assert_eq!(proxy.connections(), 1, "the second call has gone on with that connection");

    // It tries an idle connection.
    let clock = Ahead::default();
    let store = RedisStore::builder(&url(&proxy)).clock(clock.clone()).build().unwrap();
    store.check().await.unwrap();
    clock.0.store(11_000, Ordering::Relaxed);
    server.signal("STOP");
    let mut first = std::pin::pin!(one(&store, claim(5, 1), in_secs(120)));
    let sent = proxy.requests();
    poll_until_sent(&mut first, &proxy, sent + 1).await;
    server.signal("CONT");
    written(&one(&store, claim(6, 1), in_secs(21)).await);
    written(&first.await);
}

/// Its server never answers on that connection. A call that waits for it as well gives it up in time, and makes another.
#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_made_anew() {
    let server = Server::redis(&[]);
    let proxy = before(&server).await;
    let store = RedisStore::builder(&url(&proxy))
        .connect_timeout(Duration::from_millis(500))
        .build()
        .unwrap();
    let fault = proxy.faults().add(TcpFault::swallow_answers().times(1));
    let mut first = std::pin::pin!(one(&store, claim(1, 1), in_secs(60)));
    poll(&mut first).await;
    written(&one(&store, claim(2, 1), in_secs(60)).await);
    assert_eq!(proxy.faults().injected(fault), 1);
    written(&first.await);
}

/// The call that is not polled any more keeps what came of its connection: an error, which counts for no later call.
#[tokio::test]
async fn a_connection_that_failed_is_made_anew() {
    let server = Server::redis(&[]);
    let proxy = before(&server).await;
    let store = patient(&proxy);
    proxy.faults().add(TcpFault::cut().times(1));
    let mut first = std::pin::pin!(one(&store, claim(1, 1), in_secs(60)));
    poll(&mut first).await;
    written(&one(&store, claim(2, 1), in_secs(10)).await);
    assert_eq!(proxy.connections(), 2);
}

/// The server has answered, and closed the connection since, as while the process was frozen.
#[tokio::test]
async fn a_connection_that_a_call_began_to_make_long_ago_is_not_used() {
    let server = Server::redis(&[]);
    let proxy = before(&server).await;
    let clock = Ahead::default();
    let store = RedisStore::builder(&url(&proxy))
        .clock(clock.clone())
        .attempt_timeout(Duration::from_secs(20))
        .backoff(NO_SECOND, NO_SECOND)
        .build()
        .unwrap();
    let mut first = std::pin::pin!(one(&store, claim(1, 1), in_secs(120)));
    server.signal("STOP");
    poll_until_sent(&mut first, &proxy, 1).await;
    server.signal("CONT");
    server.text(&["PING"]).await;
    proxy.cut();
    clock.0.store(60_000, Ordering::Relaxed);
    let verdict = one(&store, claim(2, 1), in_secs(120)).await;
    assert!(matches!(verdict, Verdict::Written), "it was sent on the old connection: {verdict:?}");
}

/// At the beginning, after a pause in which the connection may have died, and after the server has closed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn hundreds_of_calls_that_begin_at_once_make_one_connection() {
    let server = Server::redis(&[]);
    let proxy = before(&server).await;
    let clock = Ahead::default();
    let store = RedisStore::builder(&url(&proxy))
        .clock(clock.clone())
        .attempt_timeout(Duration::from_secs(20))
        .connect_timeout(Duration::from_secs(20))
        .build()
        .unwrap();
    let calls = async |from: usize| {
        let mut tasks = tokio::task::JoinSet::new();
        for n in from..from + 300 {
            let store = store.clone();
            tasks.spawn(async move {
                let by = n as u128 + 1;
                let verdict = one(&store, claim(n, by), in_secs(240)).await;
                let read = store.read(&[key(n)], in_secs(240)).await.remove(0).unwrap();
                assert_eq!(read.unwrap().owner, Some(owner(by)), "each call has its own answers");
                verdict
            });
        }
        let verdicts = tasks.join_all().await;
        verdicts.iter().for_each(written);
    };
    calls(0).await;
    assert_eq!(proxy.connections(), 1);
    clock.0.store(60_000, Ordering::Relaxed);
    calls(1_000).await;
    let connections = proxy.connections();
    assert!(connections <= 2, "a busy machine may have no answer in time: {connections}");
    let stats = server.text(&["INFO", "commandstats"]).await;
    assert!(stats.contains("cmdstat_ping:calls=1,"), "it was tried once: {stats}");
    clock.0.store(120_000, Ordering::Relaxed);
    proxy.cut();
    calls(2_000).await;
    assert_eq!(proxy.connections(), connections + 1);
}

/// A server that reads nothing for a moment: the calls of the loop wait with large records for room on the connection.
#[tokio::test]
async fn calls_that_wait_for_room_on_the_connection_and_are_not_polled_any_more_stop_no_other() {
    let server = Server::redis(&[]);
    let store = server.store();
    store.check().await.unwrap();
    let large = |n: usize| {
        let mut write = claim(n, 1);
        write.record.as_mut().unwrap().result = Some("x".repeat(300_000).into());
        write
    };
    server.signal("STOP");
    let mut calls = Vec::new();
    for n in 0..200 {
        let mut call = Box::pin(one(&store, large(n), in_secs(60)));
        poll(&mut call.as_mut()).await;
        calls.push(call);
    }
    server.signal("CONT");
    written(&one(&store, claim(1_000, 1), in_secs(10)).await);
    let verdicts = join_all(calls).await;
    verdicts.iter().for_each(written);
}
