//! Expired records are removed, a batch at a time, and no others.

use std::time::Duration;

use lambda_idempotency_core::{
    browse::{Browse, Left},
    clock::{BoxFuture, Clock, SystemClock, Timestamp},
    record::{IdempotencyRecord, Status},
    store::{Guard, Store, Write},
};

use lambda_idempotency_postgres::PostgresStore;

use crate::{
    servers::Server,
    table::{Ahead, new_store, new_table},
    writes::{completed, in_secs, key, wrote},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeping_removes_what_expired_an_hour_ago() {
    let server = Server::shared_postgres();
    let store = new_store(&server.url()).await;
    let ago = |minutes: u64| SystemClock.now().minus(Duration::from_secs(60 * minutes));
    let writes: Vec<_> = (0..40)
        .map(|number: u64| {
            let expiry = match number % 4 {
                0 => in_secs(3600),
                1 => ago(50),
                _ => ago(70 + number),
            };
            let record = IdempotencyRecord::new(Status::Completed, expiry);
            Write::new(key(number.to_string()), Guard::Absent, Some(record))
        })
        .collect();
    store.write(&writes, in_secs(20)).await;
    let mut swept = Vec::new();
    for _ in 0..4 {
        swept.push(store.sweep(8.try_into().unwrap(), in_secs(20)).await.unwrap());
    }
    assert_eq!(swept, [8, 8, 4, 0]);
    assert_eq!(store.count(in_secs(20)).await.unwrap(), 20);
    let keys: Vec<_> = (0..40).map(|number| key(number.to_string())).collect();
    let left = store.read(&keys, in_secs(20)).await;
    for (number, left) in left.into_iter().enumerate() {
        assert_eq!(left.unwrap().is_some(), number % 4 < 2, "{number}");
    }
}

/// The machine's clock, a day behind.
struct Behind;

impl Clock for Behind {
    fn now(&self) -> Timestamp {
        SystemClock.now().minus(DAY)
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        SystemClock.sleep(duration)
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// The workers' clocks say when a record expires, and the server's may be wrong, or that of a tool.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sweeping_removes_only_what_has_expired_by_both_clocks() {
    let server = Server::shared_postgres();
    let table = new_table(&server.url()).await;
    let ahead = Ahead::default();
    ahead.set(DAY);
    let [behind, ahead] = [table.clone().clock(Behind), table.clone().clock(ahead)];
    let (behind, ahead) = (behind.build().unwrap(), ahead.build().unwrap());
    let store = table.build().unwrap();
    let expired = SystemClock.now().minus(DAY / 2);
    for (name, expiry) in [("expired", expired), ("later", in_secs(7200))] {
        let record = IdempotencyRecord::new(Status::Completed, expiry);
        let write = Write::new(key(name), Guard::Absent, Some(record));
        wrote(&store, write).await;
    }
    let most = 8.try_into().unwrap();
    let swept = async |store: &PostgresStore| {
        let deadline = store.server_time(in_secs(20 + 86_400)).await.unwrap().plus(2 * DAY);
        store.sweep(most, deadline).await.unwrap()
    };
    assert_eq!(swept(&behind).await, 0, "by the clock of the store it has not expired");
    assert_eq!(swept(&ahead).await, 1, "by the clock of the server the other has not");
    assert!(store.read(&[key("later")], in_secs(20)).await[0].as_ref().unwrap().is_some());
}

/// Steps of 3 MB: a page of what is left reads none of them, and one of all records ends before it is too large.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_end_at_some_megabytes_and_read_nothing_that_nobody_needs() {
    let store = new_table(&Server::shared_postgres().url()).await.build().unwrap();
    for name in ["a", "b", "c"] {
        let mut record = completed(1);
        record.steps = Some("x".repeat(3 * 1024 * 1024).into());
        record.outbox = Some(r#"[{"to":"q","body":"1"}]"#.into());
        wrote(&store, Write::new(key(name), Guard::Absent, Some(record))).await;
    }
    let limit = std::num::NonZeroUsize::new(100).unwrap();
    let page = store.left(Left::Messages, None, limit, in_secs(60)).await.unwrap();
    let steps = page.items.iter().map(|(_, item)| item.as_ref().unwrap().steps.is_some());
    assert_eq!((steps.collect::<Vec<_>>(), page.next), (vec![false; 3], None));
    let (mut pages, mut next) = (Vec::new(), None);
    loop {
        let page = store.page(next.as_ref(), limit, in_secs(60)).await.unwrap();
        pages.push(page.items.len());
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(pages, [1, 1, 1]);
}
