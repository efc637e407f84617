//! Several hosts in one URL, of which one takes writes.

use std::time::Duration;

use futures_util::future::join_all;
use lambda_idempotency_postgres::PostgresStore;
use lambda_idempotency_testkit::tcp::{TcpFault, TcpProxy};
use tokio::net::{TcpSocket, TcpStream};

use crate::{
    servers::{Server, postgres_url},
    table::{name_of, new_table},
    writes::{claim, error_of, in_secs, one, written},
};

/// The first host is a machine without power: its network takes no connections, and says nothing.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_does_not_answer_keeps_no_time_of_those_behind_it() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await;
    let name = name_of(&table);
    let silent = TcpSocket::new_v4().unwrap();
    silent.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let silent = silent.listen(1).unwrap();
    let first = silent.local_addr().unwrap();
    let mut taken = Vec::new();
    let short = Duration::from_millis(200);
    while let Ok(Ok(tcp)) = tokio::time::timeout(short, TcpStream::connect(first)).await {
        taken.push(tcp);
    }
    let second = server.address().to_string();
    let url = server.url().replace(&second, &format!("{first},{second}"));
    for parameters in ["", "&target_session_attrs=read-write", "&connect_timeout=1"] {
        let store = PostgresStore::builder(&format!("{url}{parameters}")).table(&name);
        written(&one(&store.build().unwrap(), claim(parameters, 1), in_secs(60)).await);
    }
    // A call with less time than one host may take reaches the second one, too.
    let store = PostgresStore::builder(&url).table(&name).connect_timeout(Duration::from_secs(60));
    written(&one(&store.build().unwrap(), claim("short", 1), in_secs(10)).await);
}

/// The connections that a store keeps lead to a machine that has stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_to_a_host_that_does_not_answer_are_not_tried_one_after_the_other() {
    let server = Server::shared_postgres();
    let proxy = TcpProxy::start(server.address()).await.unwrap();
    let table = new_table(&postgres_url(proxy.address())).await.max_connections(8);
    let store = table.attempt_timeout(Duration::from_millis(200)).build().unwrap();
    let names = (0..6).map(|number| number.to_string());
    let claims = names.map(async |name| one(&store, claim(&name, 1), in_secs(60)).await);
    join_all(claims).await.iter().for_each(written);
    let before = proxy.connections();
    proxy.faults().add(TcpFault::silence());
    // Trying them one after the other, of which each has twice the time, would take three seconds for the first four.
    error_of(one(&store, claim("after", 1), in_secs(4)).await);
    assert!(proxy.connections() > before, "a new one was tried");
    proxy.faults().clear();
    written(&one(&store, claim("after", 1), in_secs(60)).await);
}
