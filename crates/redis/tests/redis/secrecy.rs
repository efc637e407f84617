//! What `Debug` shows of a store, and of its builder.

use lambda_idempotency_redis::RedisStore;

#[test]
fn debug_shows_no_secret() {
    let builder = RedisStore::builder("redis://s3cr3t-user:s3cr3t@cache:6380/2");
    let shown = format!("{builder:?}");
    let store = builder.build().unwrap();
    let shown = format!("{shown} {store:?}");
    assert!(!shown.contains("s3cr3t"), "{shown}");
    assert!(shown.contains("cache:6380"), "{shown}");
}
