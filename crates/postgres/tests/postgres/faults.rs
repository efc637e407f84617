//! A server that is killed, restarted, cut off, slow or silent. A confirmed write is there afterwards, an unknown
//! one is said to be in doubt, and the next call works.

use std::time::Duration;

use lambda_idempotency_core::{
    record::{Owner, Status},
    store::{Store, StoreErrorKind, Verdict},
};
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};

use crate::{
    effects::Counts,
    servers::{Server, postgres_url},
    table::{Ahead, PATIENCE, ask, is_contended, name_of, new_store, new_table, while_held},
    writes::{
        claim, claimed, complete, completed, error_of, in_secs, key, one, stored, unknown, written,
        wrote,
    },
};

/// A server, a proxy before it, and a store that waits a fifth of a second for each answer.
async fn behind_a_proxy() -> (TcpProxy, PostgresStore) {
    let server = Server::shared_postgres();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await;
    let store = table.attempt_timeout(Duration::from_millis(200)).build().unwrap();
    wrote(&store, claim("held", 1)).await;
    (proxy, store)
}

/// The same record, whenever its expiry was computed.
#[track_caller]
fn is_completed(found: Option<lambda_idempotency_core::record::IdempotencyRecord>, by: u128) {
    let found = found.expect("a record");
    assert_eq!((found.status, found.owner), (completed(by).status, Some(Owner::from_bits(by))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_answer_was_lost_is_recognised_as_its_own() {
    let (proxy, store) = behind_a_proxy().await;
    for (name, write) in [("new", claim("new", 2)), ("held", complete("held", 1))] {
        proxy.faults().add(TcpFault::swallow_answers());
        let heal = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            proxy.faults().clear();
        };
        let (verdict, ()) = tokio::join!(one(&store, write.clone(), in_secs(20)), heal);
        written(&verdict);
        assert_eq!(stored(&store, name).await, write.record, "it was applied once");
    }
    let again = one(&store, claim("new", 2), in_secs(20)).await;
    assert!(
        matches!(again, Verdict::Found(Some(_))),
        "a new call is told what is there: {again:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_network_ends_at_the_deadline_in_doubt_and_the_next_call_works() {
    let (proxy, store) = behind_a_proxy().await;
    for fault in [TcpFault::silence(), TcpFault::swallow_answers()] {
        // A connection is open when the network fails, so something can be sent.
        assert!(stored(&store, "held").await.is_some());
        proxy.faults().add(fault);
        let call = one(&store, complete("held", 1), in_secs(2));
        let verdict = tokio::time::timeout(PATIENCE, call).await;
        let error = error_of(verdict.expect("it ends by its deadline"));
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(error.may_have_applied(), "{error}");
        proxy.faults().clear();
    }
    // The second one was applied.
    is_completed(stored(&store, "held").await, 1);
}

/// One of three writes is applied, and two guards fail. The record instead of one of them is asked for in a second exchange,
/// which fails. The call has no time for a third.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_cannot_be_read_afterwards_fails_no_other_write_of_its_call() {
    let server = Server::shared_postgres();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let (table, hour) =
        (new_table(&postgres_url(proxy.address())).await, Duration::from_secs(3600));
    let store = table.backoff(hour, hour).build().unwrap();
    wrote(&store, claim("held", 1)).await;
    for failing in [TcpFault::cut(), TcpFault::lose_answer()] {
        let [a, b] = ["a", "b"].map(|name| format!("{name}-{failing:?}"));
        for write in [claim(&a, 1), claim(&b, 1)] {
            wrote(&store, write).await;
        }
        let passes_one = proxy.faults().add(TcpFault::delay(Duration::ZERO).times(1));
        let failing = proxy.faults().add(failing);
        let writes = [complete(&a, 1), claim("held", 2), complete(&b, 2)];
        let verdicts = store.write(&writes, in_secs(60)).await;
        let injected = [passes_one, failing].map(|fault| proxy.faults().injected(fault));
        proxy.faults().clear();
        assert_eq!(injected, [1, 1]);
        let [of_a, of_held, of_b]: [Verdict; 3] = verdicts.try_into().unwrap();
        written(&of_a);
        is_completed(stored(&store, &a).await, 1);
        assert!(matches!(&of_held, Verdict::Found(Some(_))), "{of_held:?}");
        unknown(of_b, StoreErrorKind::Unavailable, false);
        let found = stored(&store, &b).await.map(|record| record.owner);
        assert_eq!(found, Some(Some(Owner::from_bits(1))));
    }
}

/// As above, with a failure after which no request is repeated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_record_that_may_not_be_read_afterwards_fails_no_other_write_of_its_call() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    let store = table.build().unwrap();
    for name in ["a", "b"] {
        wrote(&store, claim(name, 1)).await;
    }
    // It may read what a write needs, and no more.
    let grant = format!(
        "CREATE ROLE {name}_role LOGIN; GRANT UPDATE, SELECT (key, status, owner, last_owner, lease_until, \
         expires_at, provenance) ON {name} TO {name}_role"
    );
    ask(&server.url(), &grant).await;
    let url = server.url().replace("tests@", &format!("{name}_role@"));
    let narrow = PostgresStore::builder(&url).table(&*name).build().unwrap();
    let verdicts = narrow.write(&[complete("a", 1), complete("b", 2)], in_secs(20)).await;
    let [of_a, of_b]: [Verdict; 2] = verdicts.try_into().unwrap();
    written(&of_a);
    is_completed(stored(&store, "a").await, 1);
    unknown(of_b, StoreErrorKind::Denied, false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_were_cut_are_replaced_within_the_call() {
    let (proxy, store) = behind_a_proxy().await;
    for round in 2..6 {
        proxy.cut();
        wrote(&store, claim(format!("cut-{round}"), round)).await;
    }
}

/// Before a process is frozen its connection is in order, and afterwards it may be dead without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_idle_for_long_is_not_used() {
    let server = Server::shared_postgres();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let clock = Ahead::default();
    let table = new_table(&postgres_url(proxy.address())).await;
    let store = table.clock(clock.clone()).build().unwrap();
    let before = proxy.connections();
    wrote(&store, claim("a", 1)).await;
    wrote(&store, complete("a", 1)).await;
    assert_eq!(proxy.connections(), before + 1, "one connection serves calls in a row");
    clock.set(Duration::from_secs(51));
    written(&one(&store, claim("b", 1), in_secs(80 + 60)).await);
    assert_eq!(proxy.connections(), before + 2);
}

/// Workers claim keys and complete them, half of them with an effect, while the server is killed three times. The answers to
/// them are true, and an effect is there, once, if and only if its key is completed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_server_has_confirmed_is_there_afterwards() {
    let mut server = Server::postgres(&["fsync=off"]);
    let (store, counts) = (&*new_store(&server.url()).await, &Counts::new(&server.url()).await);
    let killer = std::thread::spawn(move || {
        for _ in 0..3 {
            std::thread::sleep(Duration::from_millis(300));
            server.kill();
            std::thread::sleep(Duration::from_millis(100));
            server.run();
        }
        server
    });
    let killer = &killer;
    // Until the server was killed for the last time, and some completions are confirmed.
    let work = async |worker: u128| {
        let (mut told, mut confirmed) = (Vec::new(), 0);
        for number in 0.. {
            if killer.is_finished() && confirmed > 4 {
                break;
            }
            let (name, owner) = (format!("{worker}-{number}"), worker << 64 | number);
            let done = complete(&name, owner);
            let done = if worker.is_multiple_of(2) { done } else { counts.counted(&name, owner) };
            // Short, so that some calls end while the server is down.
            if matches!(one(store, claim(&name, owner), in_secs(1)).await, Verdict::Written) {
                let verdict = one(store, done, in_secs(1)).await;
                confirmed += usize::from(matches!(verdict, Verdict::Written));
                told.push((name, owner, worker % 2 == 1, verdict));
            }
        }
        told
    };
    let told = futures_util::future::join_all((0..8).map(work)).await.concat();
    for (name, owner, has_effect, verdict) in told {
        let found = stored(store, &name).await.map(|record| (record.status, record.owner));
        let is_there = found == Some((Status::Completed, Some(Owner::from_bits(owner))));
        match &verdict {
            Verdict::Written => assert!(is_there, "{name}"),
            Verdict::Unknown(error) if !error.may_have_applied() => assert!(!is_there, "{name}"),
            _ => {}
        }
        if has_effect {
            assert_eq!(counts.of(&name).await, i64::from(is_there), "{name}: {verdict:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_is_unavailable_and_nothing_is_in_doubt() {
    let mut server = Server::postgres(&["fsync=off"]);
    let store = new_store(&server.url()).await;
    server.stop();
    unknown(one(&store, claim("a", 1), in_secs(1)).await, StoreErrorKind::Unavailable, false);
    let error = store.read(&[key("a")], in_secs(1)).await.pop().unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}

/// A call that is dropped takes its connection with it: nobody reads its answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_leaves_no_answer_to_the_next() {
    let (proxy, store) = behind_a_proxy().await;
    for round in 0..10 {
        proxy.faults().add(TcpFault::delay_answers(Duration::from_millis(20)));
        let name = format!("dropped-{round}");
        let dropped = one(&store, claim(&name, 7), in_secs(20));
        let limit = Duration::from_millis(2 * round);
        let _ = tokio::time::timeout(limit, dropped).await;
        proxy.faults().clear();
        let found = stored(&store, "held").await;
        assert_eq!(found.and_then(|record| record.owner), claimed(1).owner);
    }
}

/// Clients that were killed in a transaction hold no record for long: the server ends it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_another_transaction_holds_is_contended() {
    let server = Server::shared_postgres();
    let pooler = Server::pgbouncer(server, "", "");
    for url in [server.url(), pooler.url()] {
        let table = new_table(&url).await.attempt_timeout(Duration::from_secs(1));
        let name = name_of(&table);
        let store = table.build().unwrap();
        wrote(&store, claim("a", 1)).await;
        let hold = format!("LOCK TABLE {name} IN EXCLUSIVE MODE");
        while_held(&server.url(), &hold, is_contended(&store, || complete("a", 1))).await;
        wrote(&store, complete("a", 1)).await;
        is_completed(stored(&store, "a").await, 1);
    }
}

/// Somebody holds one row, for instance in an interactive session. The others of the call are not kept waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_another_transaction_holds_delays_no_other_of_its_call() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_millis(500));
    let name = name_of(&table);
    let store = table.build().unwrap();
    let names: Vec<_> = (0..20).map(|n| format!("k{n:02}")).collect();
    let claims: Vec<_> = names.iter().map(|name| claim(name, 1)).collect();
    store.write(&claims, in_secs(20)).await.iter().for_each(written);
    let holding = async {
        let completions: Vec<_> = names.iter().map(|name| complete(name, 1)).collect();
        let mut verdicts = store.write(&completions, in_secs(6)).await;
        error_of(verdicts.remove(7));
        verdicts.iter().for_each(written);
        is_contended(&store, || complete("k07", 1)).await;
    };
    let hold = format!("SELECT FROM {name} WHERE key LIKE '%k07' FOR UPDATE");
    while_held(&server.url(), &hold, holding).await;
}

/// A server whose answers come late is no server that does not answer: each try has twice the time of the one before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_takes_longer_than_its_limit_is_made() {
    let proxy = TcpProxy::start(Server::shared_postgres().address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await;
    let store = table.connect_timeout(Duration::from_millis(100)).build().unwrap();
    proxy.faults().add(TcpFault::delay_answers(Duration::from_millis(350)));
    wrote(&store, claim("a", 1)).await;
    wrote(&store, complete("a", 1)).await;
    is_completed(stored(&store, "a").await, 1);
}
