//! A store before a server that is slow, ends, or skips a write: triggers of its table do that.

use std::time::Duration;

use lambda_idempotency_core::store::{Guard, Store as _, StoreErrorKind, Write};
use lambda_idempotency_postgres::PostgresStore;

use crate::{
    effects::Counts,
    servers::Server,
    table::{AT_COMMIT, ask, name_of, new_table, tries, trigger},
    writes::{claim, complete, completed, in_secs, key, one, stored, unknown, written, wrote},
};

/// A store in a table that runs this in a trigger, and the sequence of it.
async fn with_trigger(when: &str, body: &str) -> (PostgresStore, String) {
    let url = Server::shared_postgres().url();
    let table = new_table(&url).await.attempt_timeout(Duration::from_millis(300));
    let sequence = trigger(&url, &name_of(&table), when, body).await;
    (table.build().unwrap(), sequence)
}

/// The server stops the statement before the request is given up, each time later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_takes_longer_than_a_request_is_applied() {
    let (store, _) = with_trigger("BEFORE INSERT", "PERFORM pg_sleep(0.9);").await;
    wrote(&store, claim("a", 1)).await;
}

/// A server that ends while it commits may have committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ends_at_the_commit_leaves_it_in_doubt() {
    const ENDS: &str = "PERFORM pg_terminate_backend(pg_backend_pid());";
    let (store, _) = with_trigger(AT_COMMIT, ENDS).await;
    unknown(one(&store, claim("a", 1), in_secs(1)).await, StoreErrorKind::Unavailable, true);
    assert!(stored(&store, "a").await.is_none());
    // The same with effects, on whose table the trigger is.
    let counts = Counts::new(&Server::shared_postgres().url()).await;
    trigger(&counts.url, &counts.table, AT_COMMIT, ENDS).await;
    let store = new_table(&counts.url).await.build().unwrap();
    wrote(&store, claim("a", 1)).await;
    unknown(
        one(&store, counts.counted("a", 1), in_secs(1)).await,
        StoreErrorKind::Unavailable,
        true,
    );
    assert_eq!(counts.of("a").await, 0);
}

/// As where another worker changes the record, and changes it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_whose_guard_failed_and_holds_is_sent_again_and_three_times_at_most() {
    for (skipped, most) in [(2, 3), (9, 3)] {
        let skip = format!("IF nextval('{{tries}}') <= {skipped} THEN RETURN NULL; END IF;");
        let (store, sequence) = with_trigger("BEFORE UPDATE", &skip).await;
        wrote(&store, claim("a", 1)).await;
        let verdict = one(&store, complete("a", 1), in_secs(20)).await;
        if skipped < most {
            written(&verdict);
        } else {
            unknown(verdict, StoreErrorKind::Contended, false);
        }
        assert_eq!(tries(&Server::shared_postgres().url(), &sequence).await, Some(most));
    }
}

/// Others wait for a connection meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_records_are_written_in_several_transactions() {
    let url = Server::shared_postgres().url();
    let table = new_table(&url).await;
    let name = name_of(&table);
    let store = table.build().unwrap();
    let large = |name: &str| {
        let mut record = completed(1);
        record.result = Some("x".repeat(3 * 1024 * 1024).into());
        Write::new(key(name), Guard::Absent, Some(record))
    };
    let writes = ["a", "b", "c", "d"].map(large);
    store.write(&writes, in_secs(60)).await.iter().for_each(written);
    let transactions = ask(&url, &format!("SELECT count(DISTINCT xmin::text) FROM {name}")).await;
    assert_eq!(transactions, Some(2), "at most 8 MiB in each");
}
