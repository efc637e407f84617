//! Expired records are removed, a batch at a time, and no others.

use std::time::Duration;

use lambda_idempotency_core::{
    browse::Browse,
    clock::{Clock, SystemClock},
    record::{IdempotencyRecord, Status},
    store::{Guard, Store, Write},
};

use crate::{
    server::Postgres,
    table::{in_secs, key, new_store},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: `bash tests/run postgres` installs it and runs this"]
async fn sweeping_removes_what_expired_an_hour_ago() {
    let server = Postgres::shared();
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
            Write::new(key(&number.to_string()), Guard::Absent, Some(record))
        })
        .collect();
    store.write(&writes, in_secs(20)).await;
    let mut swept = Vec::new();
    for _ in 0..4 {
        swept.push(store.sweep(8.try_into().unwrap(), in_secs(20)).await.unwrap());
    }
    assert_eq!(swept, [8, 8, 4, 0]);
    assert_eq!(store.count(in_secs(20)).await.unwrap(), 20);
    let keys: Vec<_> = (0..40).map(|number| key(&number.to_string())).collect();
    let left = store.read(&keys, in_secs(20)).await;
    for (number, left) in left.into_iter().enumerate() {
        assert_eq!(left.unwrap().is_some(), number % 4 < 2, "{number}");
    }
}
