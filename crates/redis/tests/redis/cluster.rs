//! A cluster of three primaries, each with a replica or none, that fails over and moves its slots.

use std::{collections::HashSet, time::Duration};

use lambda_idempotency_core::{
    key::Key,
    store::{Guard, Store as _, Verdict, Write},
};
use lambda_idempotency_redis::RedisStore;
use redis::Value;

use crate::{
    servers::Server,
    writes::{claimed, complete, completed, in_secs, key, owner, written},
};

const ARGUMENTS: [&str; 6] = [
    "--cluster-enabled",
    "yes",
    "--cluster-node-timeout",
    "1000",
    // Replicas follow at once, not after five seconds.
    "--repl-diskless-sync-delay",
    "0",
];

pub(crate) struct Cluster {
    pub(crate) primaries: Vec<Server>,
    pub(crate) replicas: Vec<Server>,
}

impl Cluster {
    pub(crate) async fn of_three() -> Self {
        Self::with_replicas(0).await
    }

    /// With a replica of each of the first so many primaries.
    pub(crate) async fn with_replicas(count: usize) -> Self {
        let mut primaries = Vec::new();
        for _ in 0..3 {
            primaries.push(Server::redis(&ARGUMENTS));
        }
        let mut replicas = Vec::new();
        for _ in 0..count {
            replicas.push(Server::redis(&ARGUMENTS));
        }
        for (index, (first, last)) in
            [("0", "5460"), ("5461", "10922"), ("10923", "16383")].into_iter().enumerate()
        {
            let epoch = (index + 1).to_string();
            primaries[index].command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
            primaries[index].command(&["CLUSTER", "ADDSLOTSRANGE", first, last]).await;
        }
        for other in primaries[1..].iter().chain(&replicas) {
            let (port, bus) = (other.port.to_string(), other.more_ports[0].to_string());
            primaries[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await;
        }
        let cluster = Self { primaries, replicas };
        for (primary, replica) in cluster.primaries.iter().zip(&cluster.replicas) {
            let id = primary.text(&["CLUSTER", "MYID"]).await;
            let done = |answer: &Value| *answer == Value::Okay;
            replica.wait_until(&["CLUSTER", "REPLICATE", &id], done).await;
        }
        for server in cluster.primaries.iter().chain(&cluster.replicas) {
            server
                .wait_until(&["CLUSTER", "INFO"], |answer| contains(answer, "cluster_state:ok"))
                .await;
            let known = (3 + count).to_string();
            let all = format!("cluster_known_nodes:{known}");
            server.wait_until(&["CLUSTER", "INFO"], |answer| contains(answer, &all)).await;
        }
        for replica in &cluster.replicas {
            replica
                .wait_until(&["INFO", "replication"], |a| contains(a, "master_link_status:up"))
                .await;
        }
        cluster
    }

    pub(crate) fn store(&self) -> RedisStore {
        self.primaries[0].store()
    }
}

fn contains(answer: &Value, part: &str) -> bool {
    matches!(answer, Value::BulkString(text) if String::from_utf8_lossy(text).contains(part))
}

impl Server {
    /// Changes a setting.
    async fn set(&self, name: &str, value: &str) {
        assert_eq!(self.command(&["CONFIG", "SET", name, value]).await, Value::Okay);
    }

    /// Repeats the command until its answer is this one.
    pub(crate) async fn wait_until(&self, words: &[&str], is: impl Fn(&Value) -> bool) {
        let mut last = None;
        for _ in 0..400 {
            match self.try_command(words).await {
                Ok(answer) if is(&answer) => return,
                answer => last = Some(answer),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{words:?} was not answered as expected in 20 s: {last:?}");
    }
}

/// The server that is killed had a third of the keys. After its replica has taken over, all of them are there, and
/// each call that was made meanwhile ended by its deadline.
#[tokio::test]
async fn calls_go_on_after_a_failover_with_all_records() {
    let mut cluster = Cluster::with_replicas(1).await;
    let store = cluster.primaries[1]
        .builder()
        .attempt_timeout(Duration::from_millis(500))
        .connect_timeout(Duration::from_millis(500))
        .build()
        .unwrap();
    let writes: Vec<Write> =
        (0..60).map(|n| Write::new(key(n), Guard::Absent, Some(claimed(7)))).collect();
    store.write(&writes, in_secs(60)).await;
    let replica = cluster.replicas.remove(0);
    let size = cluster.primaries[0].command(&["DBSIZE"]).await;
    replica.wait_until(&["DBSIZE"], |has| *has == size).await;
    // The replica takes over when the test says so, however old its data is then. Meanwhile the others serve their keys.
    replica.set("cluster-replica-no-failover", "yes").await;
    replica.set("cluster-replica-validity-factor", "0").await;
    for server in &cluster.primaries {
        server.set("cluster-require-full-coverage", "no").await;
    }
    cluster.primaries[0].kill();

    // While there is no primary, calls for its keys end by their deadline; the others succeed.
    let keys: Vec<Key> = (0..60).map(key).collect();
    let answers = store.read(&keys, in_secs(5)).await;
    let read = answers.iter().filter(|answer| matches!(answer, Ok(Some(_)))).count();
    assert!((1..60).contains(&read), "{read} of 60");
    assert!(answers.iter().all(|answer| match answer {
        Ok(record) => record.is_some(),
        Err(error) => error.is_transient(),
    }));

    replica.set("cluster-replica-no-failover", "no").await;
    let completions: Vec<Write> = (0..60).map(|n| complete(n, 7)).collect();
    let verdicts = store.write(&completions, in_secs(60)).await;
    verdicts.iter().for_each(written);
    assert!(contains(&replica.command(&["INFO", "replication"]).await, "role:master"));
    let answers = store.read(&keys, in_secs(60)).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(Some(record)) if record.owner == Some(owner(7))))
    );
}

/// A slot moves from one server to another, key by key: first each request for a key that has moved is sent on (ASK),
/// then all are (MOVED).
#[tokio::test]
async fn keys_are_found_while_and_after_their_slot_moves() {
    let cluster = Cluster::of_three().await;
    let store = cluster.store();
    // The braces put all of them into one slot.
    let key = |n: usize| Key::from_text(format!("{{tag}}#{n}"));
    let claims: Vec<Write> =
        (0..6).map(|n| Write::new(key(n), Guard::Absent, Some(claimed(7)))).collect();
    assert!(store.write(&claims, in_secs(60)).await.iter().all(|v| matches!(v, Verdict::Written)));
    let Value::Int(slot) = cluster.primaries[0].command(&["CLUSTER", "KEYSLOT", "{tag}"]).await
    else {
        panic!("a number")
    };
    let slot = slot.to_string();
    let mut from = 0;
    for (index, server) in cluster.primaries.iter().enumerate() {
        if server.command(&["CLUSTER", "COUNTKEYSINSLOT", &slot]).await == Value::Int(6) {
            from = index;
        }
    }
    let to = (from + 1) % 3;
    let (from, to) = (&cluster.primaries[from], &cluster.primaries[to]);
    let ids = [from.text(&["CLUSTER", "MYID"]).await, to.text(&["CLUSTER", "MYID"]).await];
    to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &ids[0]]).await;
    from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &ids[1]]).await;
    let port = to.port.to_string();
    for n in 0..3 {
        let name = format!("idempotency:{{tag}}#{n}");
        from.command(&["MIGRATE", "127.0.0.1", &port, &name, "0", "5000"]).await;
    }
    let complete = |n: usize| Write::new(key(n), Guard::OwnedBy(owner(7)), Some(completed(7)));
    // Some have moved, and one is new, so it is made where the slot will be.
    let mut writes: Vec<Write> = (1..5).map(complete).collect();
    writes.push(Write::new(key(9), Guard::Absent, Some(claimed(8))));
    let verdicts = store.write(&writes, in_secs(60)).await;
    verdicts.iter().for_each(written);
    for n in 3..6 {
        let name = format!("idempotency:{{tag}}#{n}");
        from.command(&["MIGRATE", "127.0.0.1", &port, &name, "0", "5000"]).await;
    }
    for server in [to, from] {
        server.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &ids[1]]).await;
    }
    let verdicts = store.write(&[complete(0), complete(5)], in_secs(60)).await;
    verdicts.iter().for_each(written);
    let keys: Vec<Key> = [0, 1, 2, 3, 4, 5, 9].map(key).to_vec();
    let found: HashSet<_> = store
        .read(&keys, in_secs(60))
        .await
        .into_iter()
        .map(|r| r.unwrap().unwrap().owner)
        .collect();
    assert_eq!(found, HashSet::from([Some(owner(7)), Some(owner(8))]));
    assert_eq!(to.command(&["CLUSTER", "COUNTKEYSINSLOT", &slot]).await, Value::Int(7));
}
