//! Several hosts in one URL, of which one takes writes.

use std::{net::TcpListener, time::Duration};

use futures_util::future::join_all;
use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock},
    store::StoreErrorKind,
};
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};

use crate::{
    server::Postgres,
    table::{claim, in_secs, name_of, new_table, one, stored, unknown, written},
};

/// The first host is a machine that has stopped: its network takes connections, and nothing answers. The second one has
/// taken over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn a_host_that_does_not_answer_keeps_no_time_of_those_behind_it() {
    let server = Postgres::shared();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (first, second) = (silent.local_addr().unwrap(), server.address().to_string());
    for parameters in ["", "&target_session_attrs=read-write"] {
        let url = server.url().replace(&second, &format!("{first},{second}")) + parameters;
        let store = PostgresStore::builder(&url).table(&name);
        let store = store.connect_timeout(Duration::from_millis(500)).build().unwrap();
        written(&one(&store, claim(parameters, 1), in_secs(5)).await);
        assert!(stored(&store, parameters).await.is_some());
    }
    // A call with less time than one host may take reaches the second one, too.
    let url = server.url().replace(&second, &format!("{first},{second}"));
    let store = PostgresStore::builder(&url).table(&name).connect_timeout(Duration::from_secs(60));
    written(&one(&store.build().unwrap(), claim("short", 1), in_secs(3)).await);
}

/// The connections that a store keeps lead to the machine that has stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn idle_connections_to_a_host_that_does_not_answer_are_not_tried_one_after_the_other() {
    let server = Postgres::shared();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let (first, second) = (proxy.address(), server.address().to_string());
    let url = server.url().replace(&second, &format!("{first},{second}"));
    let store = PostgresStore::builder(&url)
        .table(&name)
        .max_connections(8)
        .attempt_timeout(Duration::from_millis(500))
        .connect_timeout(Duration::from_millis(200))
        .build()
        .unwrap();
    let names = (0..6).map(|number| number.to_string());
    let claims = names.map(async |name| one(&store, claim(&name, 1), in_secs(20)).await);
    join_all(claims).await.iter().for_each(written);
    assert!(proxy.connections() > 3, "{}", proxy.connections());
    proxy.faults().add(TcpFault::silence());
    // Three of them would take half a second, one and two.
    let soon = SystemClock.now().plus(Duration::from_millis(3500));
    written(&one(&store, claim("after", 1), soon).await);
}

/// The standby is away, and the primary refuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn what_a_host_has_said_is_told_although_another_cannot_be_reached() {
    let server = Postgres::shared();
    let address = server.address().to_string();
    for hosts in [format!("{address},127.0.0.1:1"), format!("127.0.0.1:1,{address}")] {
        let url = server.url().replace(&address, &hosts).replace("/postgres?", "/nobody_has_it?");
        let store = PostgresStore::builder(&url).build().unwrap();
        let error = unknown(one(&store, claim("a", 1), in_secs(5)).await);
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{hosts}: {error}");
    }
}
