//! All connections of a store are in use.

use std::{sync::Mutex, time::Duration};

use futures_util::future::{Either, join, join_all, select};
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    record::Owner,
    store::{StoreErrorKind, Write},
};
use lambda_idempotency_postgres::PostgresStatement;
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};
use tokio::task::JoinSet;

use crate::{
    effects::{Counts, with},
    servers::{Server, postgres_url},
    table::{PATIENCE, new_table},
    writes::{claim, complete, error_of, in_secs, one, written, wrote},
};

/// A lock of the server that the test holds until it drops this, so that effects wait for it on their connections.
pub(crate) struct Lock {
    counts: Counts,
    number: u32,
    _held: tokio_postgres::Client,
    _wire: JoinSet<()>,
}

impl Lock {
    pub(crate) async fn hold(url: &str) -> Self {
        let number = u32::try_from(Owner::random().unwrap().to_bits() >> 97).unwrap();
        let (held, wire) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let mut wires = JoinSet::new();
        wires.spawn(async move { drop(wire.await) });
        held.batch_execute(&format!("SELECT pg_advisory_lock({number})")).await.unwrap();
        Self { counts: Counts::new(url).await, number, _held: held, _wire: wires }
    }

    /// An effect that waits for the lock.
    pub(crate) fn effect(&self) -> PostgresStatement {
        PostgresStatement::new(format!("SELECT pg_advisory_xact_lock({})", self.number))
    }

    /// A completion whose effect waits for the lock.
    fn waits(&self, name: &str) -> Write {
        with(complete(name, 1), [self.effect()])
    }

    /// Asks how many effects wait.
    fn waiting(&self) -> String {
        format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = {} AND NOT granted",
            self.number
        )
    }

    /// Returns once an effect waits.
    pub(crate) async fn is_waited_for(&self) {
        while self.counts.ask(&self.waiting()).await == Some(0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The machine's clock, whose timers never end.
struct WithoutTimers;

impl Clock for WithoutTimers {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// No timer helps it: a connection is there that effects do not use.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_kept_for_completions_while_effects_wait_for_locks() {
    let server = Server::shared_postgres();
    for most in [2, 4] {
        let lock = Lock::hold(&server.url()).await;
        let table = new_table(&server.url()).await.max_connections(most).clock(WithoutTimers);
        let store = &table.attempt_timeout(Duration::from_secs(60)).build().unwrap();
        let names: Vec<_> = (0..=most).map(|n| format!("waits-{n}")).collect();
        for name in names.iter().map(String::as_str).chain(["a"]) {
            wrote(store, claim(name, 1)).await;
        }
        let waiting = names.iter().map(|name| one(store, lock.waits(name), in_secs(90)));
        let waiting = join_all(waiting);
        let completing = async {
            lock.is_waited_for().await;
            wrote(store, complete("a", 1)).await;
        };
        let completing = tokio::time::timeout(PATIENCE, completing);
        match select(Box::pin(waiting), Box::pin(completing)).await {
            Either::Right((completed, _)) => completed.expect("it waits for nobody"),
            Either::Left(_) => panic!("the lock is held"),
        }
    }
}

/// The store has one connection, which comes back after longer than connecting may take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_connection_is_limited_by_the_call_only_and_costs_requests_no_time() {
    let server = Server::shared_postgres();
    let lock = Lock::hold(&server.url()).await;
    let table = new_table(&server.url()).await.max_connections(1);
    let opening = table.clone().build().unwrap();
    for name in ["waits", "a", "b"] {
        wrote(&opening, claim(name, 1)).await;
    }
    let table = table.connect_timeout(Duration::from_millis(200));
    let store = &table.attempt_timeout(Duration::from_secs(40)).build().unwrap();
    let waiting = one(store, lock.waits("waits"), in_secs(90));
    let others = async {
        lock.is_waited_for().await;
        // The server stops a statement after 7/8 of the limit of its request.
        let limit = "SELECT 1 WHERE current_setting('statement_timeout') = '35s'";
        let limit = PostgresStatement::new(limit).expect_rows(1);
        let writes = [complete("a", 1), with(complete("b", 1), [limit]), claim("c", 1)];
        let others = join_all(writes.map(|write| one(store, write, in_secs(90))));
        let release = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            drop(lock);
        };
        join(others, release).await.0.iter().for_each(written);
    };
    let done = tokio::time::timeout(PATIENCE, join(waiting, others));
    written(&done.await.expect("the connection comes back").0);
}

/// They get all the time of their calls, and so do their slots.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_that_take_longer_than_a_request_open_no_connection_beyond_the_bound() {
    let server = Server::shared_postgres();
    let counts = Counts::new(&server.url()).await;
    let table = new_table(&server.url()).await.max_connections(1);
    let table = table.connect_timeout(Duration::from_millis(100));
    let store = &table.attempt_timeout(Duration::from_millis(200)).build().unwrap();
    let sleep = "SELECT pg_sleep(2.0625)";
    for name in ["a", "b"] {
        wrote(store, claim(name, 1)).await;
    }
    let slow = ["a", "b"].map(|name| {
        one(store, with(complete(name, 1), [PostgresStatement::new(sleep)]), in_secs(90))
    });
    let running = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = '{sleep}'"
    );
    let watching = async {
        loop {
            assert!(counts.ask(&running).await <= Some(1), "there is one connection");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match select(Box::pin(join_all(slow)), Box::pin(watching)).await {
        Either::Left((done, _)) => done.iter().for_each(written),
        Either::Right((never, _)) => never,
    }
}

/// Their leases run out meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_and_claims_that_may_have_been_applied_are_sent_before_other_claims() {
    let server = Server::shared_postgres();
    let lock = Lock::hold(&server.url()).await;
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await.max_connections(1);
    let store = &table.attempt_timeout(Duration::from_secs(40)).build().unwrap();
    wrote(store, claim("waits", 1)).await;
    wrote(store, claim("commit", 1)).await;
    let lost = proxy.faults().add(TcpFault::lose_answer().times(1));
    let order = &Mutex::new(Vec::new());
    let done = async |name: &'static str, write: Write| {
        wrote(store, write).await;
        order.lock().unwrap().push(name);
    };
    // The second one gets the connection after the first, and keeps it until the lock is free.
    let calls = [
        ("lost", claim("lost", 1)),
        ("waits", lock.waits("waits")),
        ("claim", claim("a", 1)),
        ("claim", claim("b", 1)),
        ("commit", with(complete("commit", 1), [PostgresStatement::new("SELECT 1")])),
    ];
    let calls = join_all(calls.map(|(name, write)| done(name, write)));
    let release = async {
        lock.is_waited_for().await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop(lock);
    };
    let all = tokio::time::timeout(PATIENCE, join(calls, release)).await;
    all.expect("the connection comes back");
    assert_eq!(proxy.faults().injected(lost), 1);
    assert_eq!(*order.lock().unwrap(), ["waits", "commit", "lost", "claim", "claim"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_got_no_connection_is_told_that_all_were_in_use() {
    let server = Server::shared_postgres();
    for (most, said) in [
        (1, ": all connections (1) were in use for "),
        (2, ": 1 of 2 connections, all but those kept for completions, were in use for "),
    ] {
        let lock = Lock::hold(&server.url()).await;
        let table = new_table(&server.url()).await.max_connections(most);
        let store = table.attempt_timeout(Duration::from_secs(60)).build().unwrap();
        wrote(&store, claim("waits", 1)).await;
        let waiting = one(&store, lock.waits("waits"), in_secs(90));
        let other = async {
            lock.is_waited_for().await;
            let soon = SystemClock.now().plus(Duration::from_millis(150));
            let write = if most == 1 { complete("a", 1) } else { claim("a", 1) };
            error_of(one(&store, write, soon).await)
        };
        let Either::Right((error, _)) = select(Box::pin(waiting), Box::pin(other)).await else {
            panic!("the lock is held");
        };
        let told = (error.kind(), error.may_have_applied());
        assert_eq!(told, (StoreErrorKind::Contended, false), "the server answers");
        let text = error.to_string();
        assert!(text.contains(said) && text.contains("; raise `max_connections`"), "{text}");
    }
}

/// The others of an outage are told of it, too: each waits for those that ask the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_calls_that_the_server_does_not_answer_is_an_outage() {
    let server = Server::shared_postgres();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await.max_connections(1);
    let store = &table.attempt_timeout(Duration::from_millis(500)).build().unwrap();
    wrote(store, claim("a", 1)).await;
    proxy.faults().add(TcpFault::silence());
    let until = SystemClock.now().plus(Duration::from_secs(3));
    let calls = join_all((0..4).map(|n| one(store, claim(format!("b{n}"), 1), until))).await;
    let in_use = calls.into_iter().map(error_of).filter(|error| {
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        error.to_string().contains("in use for")
    });
    assert!(in_use.count() > 0);
    // Once it answers again, it is none to wait for the others.
    proxy.faults().clear();
    wrote(store, claim("waits", 1)).await;
    let lock = Lock::hold(&server.url()).await;
    let waiting = one(store, lock.waits("waits"), in_secs(90));
    let other = async {
        lock.is_waited_for().await;
        let soon = SystemClock.now().plus(Duration::from_millis(150));
        error_of(one(store, claim("other", 1), soon).await)
    };
    let Either::Right((error, _)) = select(Box::pin(waiting), Box::pin(other)).await else {
        panic!("the lock is held");
    };
    assert_eq!(error.kind(), StoreErrorKind::Contended, "{error}");
}
