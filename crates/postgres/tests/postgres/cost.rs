//! The work of the server for a batch, by its own counts.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_core::{
    browse::{Browse as _, Left},
    clock::Timestamp,
    key::Key,
    store::{Guard, RecordVersion, Store as _, Verdict, Write},
};
use lambda_idempotency_postgres::PostgresStore;

use crate::{
    effects::Counts,
    servers::Server,
    table::new_table,
    writes::{claim, complete, completed, in_secs, key},
};

/// A store in a table of which the server's counts can be read.
async fn counted(server: &Server) -> (Counts, String, PostgresStore) {
    let counts = Counts::new(&server.url()).await;
    let table = format!("c{}", counts.table);
    let store = PostgresStore::builder(&server.url()).table(&table);
    let store = store.build().unwrap();
    store.migrate(in_secs(30)).await.unwrap();
    (counts, table, store)
}

/// A count of the server, which it writes at the end of a connection.
async fn count(counts: &Counts, question: &str, at_least: i64) -> i64 {
    for _ in 0..2400 {
        if let Some(count) = counts.ask(question).await
            && count >= at_least
        {
            return count;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server counts fewer than {at_least}: {question}");
}

/// Asks for a count of the table.
fn of_table(table: &str, column: &str) -> String {
    format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = '{table}'")
}

fn names(most: usize) -> Vec<String> {
    (0..most).map(|number| format!("{number:04}")).collect()
}

/// A planner that knows little of a table that is new would read all of it for each batch.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_batch_reads_the_whole_table_and_completions_change_no_index() {
    let server = Server::postgres(&["fsync=off", "autovacuum=off"]);
    let (counts, table, store) = counted(&server).await;
    let names = names(300);
    let write = async |writes: Vec<Write>| {
        let written = store.write(&writes, in_secs(30)).await;
        written.iter().filter(|verdict| matches!(verdict, Verdict::Written)).count()
    };
    for batch in names.chunks(100) {
        // A completion expires a second after its claim, in the same nine minutes.
        let slot = in_secs(3600).as_millis() >> 19 << 19;
        let expiring = |mut write: Write| {
            let record = write.record.as_mut().unwrap();
            let later = if record.result.is_some() { 2000 } else { 1000 };
            record.expires_at = Timestamp::from_millis(slot + later);
            write
        };
        let all = |make: &dyn Fn(&str) -> Write| {
            batch.iter().map(|name| expiring(make(name))).collect::<Vec<_>>()
        };
        assert_eq!(write(all(&|name| claim(name, 1))).await, 100);
        assert_eq!(write(all(&|name| claim(name, 1))).await, 0, "duplicates");
        assert_eq!(write(all(&|name| complete(name, 1))).await, 100);
    }
    let keys: Vec<Key> = names.iter().map(key).collect();
    assert!(store.read(&keys, in_secs(30)).await.iter().all(|read| matches!(read, Ok(Some(_)))));
    drop(store);
    assert_eq!(count(&counts, &of_table(&table, "n_tup_upd"), 300).await, 300);
    assert_eq!(count(&counts, &of_table(&table, "n_tup_hot_upd"), 1).await, 300);
    let whole = count(&counts, &of_table(&table, "seq_scan"), 0).await;
    // Making its three indexes reads the table, which is empty then.
    assert_eq!(whole, 3, "scans of the whole table");
}

/// Settlements and takeovers of the same keys by several workers, each in an order of its own, lock rows in one order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_with_the_same_keys_never_wait_in_a_circle() {
    let server = Server::postgres(&["fsync=off", "deadlock_timeout=10ms"]);
    let counts = Counts::new(&server.url()).await;
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_secs(10));
    let names = names(200);
    let claims: Vec<_> = names.iter().map(|name| claim(name, 1)).collect();
    let first = table.clone().build().unwrap();
    first.write(&claims, in_secs(30)).await;
    let stores: Vec<_> = (0..6).map(|_| Arc::new(table.clone().build().unwrap())).collect();
    let work = stores.iter().enumerate().map(async |(worker, store)| {
        for round in 0..10 {
            // They keep the owner, so that all of them may write.
            let mut writes: Vec<_> = names
                .iter()
                .map(|name| {
                    let write = claim(name, 1);
                    Write::new(
                        write.key,
                        Guard::OwnedBy(write.record.as_ref().unwrap().owner.unwrap()),
                        write.record,
                    )
                })
                .collect();
            if worker % 2 == 0 {
                writes.reverse();
            }
            if worker == 5 {
                // This one names all that it has read, and deletes some.
                let read =
                    store.read(&[key("0000")], in_secs(30)).await.remove(0).unwrap().unwrap();
                let version = RecordVersion::of(&read);
                writes[0] = Write::new(key("0000"), Guard::Unchanged(version), Some(completed(1)));
                writes.push(Write::new(key("none"), Guard::OwnedBy(read.owner.unwrap()), None));
                writes.rotate_left(round * 17);
            }
            all_known(&store.write(&writes, in_secs(60)).await, round);
        }
    });
    futures_util::future::join_all(work).await;
    drop(stores);
    never_waited_in_a_circle(&counts).await;
}

#[track_caller]
fn all_known(verdicts: &[Verdict], round: usize) {
    let unknown = verdicts.iter().filter(|verdict| matches!(verdict, Verdict::Unknown(_)));
    assert_eq!(unknown.count(), 0, "{round}");
}

async fn never_waited_in_a_circle(counts: &Counts) {
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(counts.ask(deadlocks).await, Some(0));
}

/// Each of two transactions deletes what the other updates, so the order of their statements says nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_update_and_delete_the_same_keys_never_wait_in_a_circle() {
    let server = Server::postgres(&["fsync=off", "deadlock_timeout=10ms"]);
    let counts = Counts::new(&server.url()).await;
    let table = new_table(&server.url()).await.attempt_timeout(Duration::from_secs(10));
    let stores = [0, 1].map(|_| table.clone().build().unwrap());
    let names = names(200);
    for round in 0..10 {
        let claims: Vec<_> = names.iter().map(|name| claim(name, 1)).collect();
        stores[0].write(&claims, in_secs(30)).await;
        let work = stores.iter().enumerate().map(async |(worker, store)| {
            let settle = |(number, write): (usize, &Write)| {
                let record = write.record.clone().filter(|_| number % 2 == worker);
                let owner = write.record.as_ref().unwrap().owner.unwrap();
                Write::new(write.key.clone(), Guard::OwnedBy(owner), record)
            };
            let writes: Vec<_> = claims.iter().enumerate().map(settle).collect();
            all_known(&store.write(&writes, in_secs(60)).await, round);
        });
        futures_util::future::join_all(work).await;
    }
    drop(stores);
    never_waited_in_a_circle(&counts).await;
}

/// A sweep reads what is left, and the records with nothing left cost the index nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_reads_the_index_of_what_is_left_and_not_the_table() {
    let server = Server::postgres(&["fsync=off", "autovacuum=off"]);
    let (counts, table, store) = counted(&server).await;
    let done = |number: usize| {
        let mut record = completed(1);
        if number.is_multiple_of(500) {
            record.outbox = Some("[]".into());
        }
        Write::new(key(format!("{number:04}")), Guard::Absent, Some(record))
    };
    let writes: Vec<_> = (0..2000).map(done).collect();
    store.write(&writes, in_secs(60)).await;
    let most = std::num::NonZeroUsize::new(100).unwrap();
    let page = store.left(Left::Messages, None, most, in_secs(30)).await.unwrap();
    assert_eq!((page.items.len(), page.next), (4, None));
    let page = store.left(Left::Work, None, most, in_secs(30)).await.unwrap();
    assert!(page.items.is_empty());
    drop(store);
    let read = format!(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = '{table}_unfinished'"
    );
    // Four of each sweep.
    assert_eq!(count(&counts, &read, 1).await, 8);
    // Making its three indexes reads the table, which is empty then.
    assert_eq!(count(&counts, &of_table(&table, "seq_scan"), 0).await, 3);
}
