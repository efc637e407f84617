//! Orders that are placed in PostgreSQL, in the transaction that completes their keys: whatever is killed, each is
//! placed once.

use std::{collections::BTreeMap, time::Duration};

use lambda_idempotency::{
    PostgresStore,
    clock::{Clock as _, SystemClock},
};
use lambda_idempotency_local::{FunctionConfig, SqsConfig};
use lambda_idempotency_tests::{
    events::{batch_of, order, order_with},
    function,
};
use serde_json::json;
use tokio::{task::JoinHandle, time::sleep};
use tokio_postgres::{Client, NoTls};

use crate::{
    servers::Server,
    support::{World, history, outcomes},
};

/// The timeout of the function. Leases last two seconds longer, with their grace and the clock skew.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A server with the tables, the function on it, and a connection that looks at the orders.
struct Shop {
    server: Server,
    world: World,
}

impl Shop {
    async fn open(sandboxes: usize) -> Self {
        let server = Server::postgres(&[]);
        let store = PostgresStore::new(&server.url()).unwrap();
        store.migrate(SystemClock.now().plus(Duration::from_secs(60))).await.unwrap();
        let (client, connection) = connect(&server).await;
        let orders = "CREATE TABLE orders (order_id text PRIMARY KEY, placed bigint)";
        client.batch_execute(orders).await.unwrap();
        connection.abort();
        let queue = SqsConfig {
            visibility: Some(Duration::from_millis(300)),
            max_receive_count: 200,
            ..SqsConfig::default()
        };
        let world = World::with(configured(&server), |local| local.sqs(queue).sandboxes(sandboxes));
        Self { world: world.await, server }
    }

    /// How often each order was placed.
    async fn placed(&self) -> BTreeMap<String, i64> {
        let (client, connection) = connect(&self.server).await;
        let rows = client.query("SELECT order_id, placed FROM orders", &[]).await.unwrap();
        connection.abort();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}

fn configured(server: &Server) -> FunctionConfig {
    function(env!("CARGO_BIN_EXE_postgres_orders"))
        .timeout(TIMEOUT)
        .env("IDEMPOTENCY_TABLE", "")
        .env("IDEMPOTENCY_STORE", server.url())
}

async fn connect(server: &Server) -> (Client, JoinHandle<()>) {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    #[expect(clippy::disallowed_methods, reason = "ends with the runtime of the test")]
    let reading = tokio::spawn(async move { drop(connection.await) });
    (client, reading)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_process_dies_before_its_commit_is_placed_once() {
    let shop = Shop::open(1).await;
    let event = batch_of([order("o-1"), order_with("o-2", json!({ "dieLateTimes": 2 }))]);
    shop.world.send(&event).await;
    assert_eq!(shop.placed().await, BTreeMap::from([("o-1".into(), 1), ("o-2".into(), 1)]));
    let again = shop.world.send(&event).await;
    assert_eq!(outcomes(&again), ["replayed"; 2]);
    assert_eq!(shop.placed().await.values().sum::<i64>(), 2);
}

/// The server holds the statement of a process that is killed meanwhile, and rolls it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_whose_process_is_killed_while_it_waits_leaves_nothing() {
    let shop = Shop::open(1).await;
    let (mut client, connection) = connect(&shop.server).await;
    let (looking, other) = connect(&shop.server).await;
    let killer = async {
        let lock = client.transaction().await.unwrap();
        lock.batch_execute("LOCK TABLE orders IN ACCESS EXCLUSIVE MODE").await.unwrap();
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        while looking.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(shop.world.kill_in_flight(), 1);
        lock.commit().await.unwrap();
    };
    let event = batch_of([order("o-1")]);
    let (report, ()) = tokio::join!(shop.world.send(&event), killer);
    let history = history(&report);
    assert_eq!(history.first(), Some(&("m-o-1", 1, "crashed")), "{history:?}");
    assert_eq!(history.last().map(|row| row.2), Some("executed"), "{history:?}");
    assert_eq!(shop.placed().await, BTreeMap::from([("o-1".into(), 1)]));
    drop((connection, other));
}

/// Processes are killed at times that nothing chooses, and once the server is, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_killed_no_order_is_doubled_and_none_is_lost() {
    const ORDERS: usize = 60;
    let mut shop = Shop::open(3).await;
    let ids: Vec<_> = (0..ORDERS).map(|number| format!("o-{number}")).collect();
    let delayed = |(number, id): (usize, &String)| {
        order_with(id, json!({ "delayMs": u64::try_from(number % 7).unwrap() * 40 }))
    };
    // Two copies of each order.
    let event = batch_of(ids.iter().chain(&ids).enumerate().map(delayed));
    let (mut killed, server) = (0, &mut shop.server);
    let report = {
        let world = &shop.world;
        let killer = async {
            for round in 1..=12u64 {
                sleep(Duration::from_millis(150 + round * 37 % 90)).await;
                killed += world.kill_in_flight();
                if round == 6 {
                    server.kill();
                    server.run();
                }
            }
        };
        tokio::join!(world.send(&event), killer).0
    };
    println!("{killed} processes killed, {} deliveries", report.records().count());
    assert!(killed >= 3, "{killed} processes were killed");
    let once = ids.into_iter().map(|id| (id, 1)).collect();
    assert_eq!(shop.placed().await, once);
}
