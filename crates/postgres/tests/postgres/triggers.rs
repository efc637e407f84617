//! A store before a server that is slow, ends, or skips a write: triggers of its table do that.

use std::time::Duration;

use lambda_idempotency_core::{
    browse::Browse as _,
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store as _, StoreErrorKind, Write},
};
use lambda_idempotency_postgres::PostgresStore;

use crate::{
    effects::Counts,
    servers::Server,
    table::{AT_COMMIT, ask, name_of, new_table, tries, trigger},
    writes::{
        claim, claimed, complete, completed, error_of, in_secs, key, one, stored, unknown, written,
        wrote,
    },
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

/// A renewal, a step and a mark, each by itself, with others and beside the others. A large text that a statement does not name
/// stays where it is, although the record that is written may have been listed without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_of_a_part_names_no_other_column() {
    const OTHERS: &str = "BEFORE UPDATE OF status, owner, last_owner, failed_attempts, lost_attempts, consecutive_losses, \
         fence, fingerprint, result, payload, error_type, application, provenance";
    let (store, _) = with_trigger(OTHERS, "RAISE EXCEPTION 'this column is named';").await;
    let (mut held, mut done) = (claimed(1), completed(1));
    (held.payload, held.steps) = (Some("{}".into()), Some("{}".into()));
    done.outbox = Some("[]".into());
    let listed = |record: &IdempotencyRecord| RecordVersion::of(record).to_record();
    let mut renewed = listed(&held);
    (renewed.lease_until, renewed.expires_at) = (Some(in_secs(90)), in_secs(7200));
    let mut stepped = listed(&renewed);
    stepped.steps = Some("[1]".into());
    let (mut kept, mut marked) = (stepped.clone(), done.clone());
    kept.payload.clone_from(&held.payload);
    marked.outbox = None;
    for count in [1, 3] {
        let changed = |part, record: &IdempotencyRecord, to: &IdempotencyRecord| {
            let guard = Guard::Unchanged(RecordVersion::of(record));
            let write = |n| Write::new(key(format!("{part}{n}")), guard.clone(), Some(to.clone()));
            (10 * count..11 * count).map(write).collect::<Vec<_>>()
        };
        let new = |part, record| {
            let write = |write| Write { guard: Guard::Absent, ..write };
            changed(part, record, record).into_iter().map(write).collect::<Vec<_>>()
        };
        let both = [changed("held", &renewed, &stepped), changed("done", &done, &listed(&done))];
        for writes in [
            new("held", &held),
            new("done", &done),
            new("sent", &done),
            changed("held", &held, &renewed),
            both.concat(),
        ] {
            store.write(&writes, in_secs(60)).await.iter().for_each(written);
        }
        let sent =
            new("sent", &done).into_iter().map(|write| (write.key, RecordVersion::of(&done)));
        let answers = store.mark_sent(&sent.collect::<Vec<_>>(), in_secs(60)).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        for (part, expected) in [("held", &kept), ("done", &marked), ("sent", &marked)] {
            assert_eq!(
                stored(&store, format!("{part}{}", 10 * count)).await.as_ref(),
                Some(expected)
            );
        }
    }
    error_of(one(&store, complete("held10", 1), in_secs(60)).await);
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
