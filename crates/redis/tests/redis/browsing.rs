//! Listing records while other records come and go.

use std::{collections::HashMap, num::NonZeroUsize, time::Duration};

use lambda_idempotency_core::{
    browse::{Browse as _, Cursor, Left},
    store::{Guard, RecordVersion, Store as _, StoreError, StoreErrorKind, Write},
};
use lambda_idempotency_redis::RedisStore;
use redis::Value;

use crate::{
    cluster::Cluster,
    server::{claim, completed, key, soon, wrote},
    servers::Server,
};

/// A page that ends in the middle of a step of `SCAN`, and then the records of that page are deleted: the server's next
/// step would begin with other records.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn each_record_that_stays_is_listed_once_while_others_are_deleted() {
    const ALL: usize = 3000;
    let server = Server::redis(&[]);
    let store = server.store();
    let writes: Vec<_> = (0..ALL).map(|n| claim(n, 1)).collect();
    store.write(&writes, soon()).await;
    let limit = NonZeroUsize::new(100).unwrap();
    let mut times_listed: HashMap<String, usize> = HashMap::new();
    let mut next = None;
    loop {
        let page = store.page(next.as_ref(), limit, soon()).await.unwrap();
        assert!(page.items.len() <= limit.get(), "{}", page.items.len());
        for (key, record) in &page.items {
            assert!(record.is_ok());
            *times_listed.entry(key.as_str().to_owned()).or_default() += 1;
        }
        let mut delete = vec!["DEL".to_owned()];
        delete.extend(page.items.iter().map(|(key, _)| format!("idempotency:{}", key.as_str())));
        if delete.len() > 1 {
            server.command(&delete.iter().map(String::as_str).collect::<Vec<_>>()).await;
        }
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(times_listed.len(), ALL, "some were never listed");
    assert!(times_listed.values().all(|&times| times == 1), "some were listed twice");
}

/// All pages from this one on, or the error that ended the listing.
async fn pages(
    store: &RedisStore,
    mut next: Option<Cursor>,
) -> Result<HashMap<String, usize>, StoreError> {
    let mut times_listed = HashMap::new();
    loop {
        let page = store.page(next.as_ref(), LIMIT, soon()).await?;
        for (key, record) in page.items {
            record?;
            *times_listed.entry(key.as_str().to_owned()).or_default() += 1;
        }
        match page.next {
            Some(_) => next = page.next,
            None => return Ok(times_listed),
        }
    }
}

const LIMIT: NonZeroUsize = NonZeroUsize::new(100).unwrap();

fn is_said_plainly(error: &StoreError) {
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("list them again from the beginning"), "{error}");
}

/// A server has its keys in another order than the one that it replaces, so the steps of the one count nothing at the
/// other: a listing that went on would miss records.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_listing_that_a_failover_interrupts_ends_with_an_error_and_misses_nothing_anew() {
    const ALL: usize = 3000;
    let mut cluster = Cluster::with_replicas(1).await;
    let store = cluster.primaries[1]
        .builder()
        .attempt_timeout(Duration::from_millis(500))
        .connect_timeout(Duration::from_millis(500))
        .build()
        .unwrap();
    let writes: Vec<_> = (0..ALL).map(|n| claim(n, 1)).collect();
    store.write(&writes, soon()).await;
    cluster.primaries[0].wait_until(&["WAIT", "1", "1000"], |a| *a == Value::Int(1)).await;
    let first = store.page(None, LIMIT, soon()).await.unwrap();
    cluster.primaries[0].kill();
    is_said_plainly(&pages(&store, first.next).await.unwrap_err());
    let listed = pages(&store, None).await.unwrap();
    assert_eq!(listed.len(), ALL, "some were never listed");
    assert!(listed.values().all(|&times| times == 1), "some were listed twice");
}

#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn a_listing_ends_with_an_error_if_the_server_is_restarted_in_between() {
    const ALL: usize = 3000;
    let mut server = Server::redis(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = server.store();
    let writes: Vec<_> = (0..ALL).map(|n| claim(n, 1)).collect();
    store.write(&writes, soon()).await;
    let first = store.page(None, LIMIT, soon()).await.unwrap();
    server.kill();
    server.run();
    is_said_plainly(&pages(&store, first.next).await.unwrap_err());
    assert_eq!(pages(&store, None).await.unwrap().len(), ALL);
}

/// Results of 1 MB: a page of what is left reads none of them, and one of all records ends before it is too large. What a
/// later version has written into a record stays there.
#[tokio::test]
#[ignore = "needs redis-server: bash tests/run redis"]
async fn pages_end_at_some_megabytes_and_read_nothing_that_nobody_needs() {
    const ALL: usize = 20;
    let server = Server::redis(&[]);
    let store = server.store();
    let mut record = completed(1, &"x".repeat(1024 * 1024));
    record.outbox = Some(r#"[{"to":"q","body":"1"}]"#.into());
    for n in 0..ALL {
        wrote(&store, Write::new(key(n), Guard::Absent, Some(record.clone()))).await;
    }
    server.command(&["APPEND", "idempotency:op#0", "colour 4 blue\n"]).await;
    let page = store.left(Left::Messages, None, LIMIT, soon()).await.unwrap();
    let results = page.items.iter().map(|(_, item)| item.as_ref().unwrap().result.is_some());
    assert_eq!(results.collect::<Vec<_>>(), [false; ALL]);
    let forgotten = [(key(0), RecordVersion::of(&record))];
    store.forget(Left::Messages, &forgotten, soon()).await.pop().unwrap().unwrap();
    let text = server.text(&["GET", "idempotency:op#0"]).await;
    assert!(text.ends_with("\ncolour 4 blue\n") && !text.contains("outbox"), "the rest stays");
    let Value::Int(removal) = server.command(&["PTTL", "idempotency:op#0"]).await else { panic!() };
    assert!(removal > 0, "{removal}");
    let first = store.page(None, LIMIT, soon()).await.unwrap();
    assert!(first.items.len() < ALL, "{} of 1 MB each", first.items.len());
    let listed = pages(&store, None).await.unwrap();
    assert!(listed.len() == ALL && listed.values().all(|times| *times == 1), "{listed:?}");
}
