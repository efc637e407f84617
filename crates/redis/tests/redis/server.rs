//! What the tests send to a Redis, and expect of it.

use std::time::Duration;

use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store as _, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_redis::{RedisStore, RedisStoreBuilder};
use redis::{Cmd, Value};

use crate::servers::Server;

impl Server {
    pub(crate) fn builder(&self) -> RedisStoreBuilder {
        RedisStore::builder(&self.url())
            .attempt_timeout(Duration::from_secs(20))
            .connect_timeout(Duration::from_secs(20))
            .backoff(Duration::from_millis(1), Duration::from_millis(16))
    }

    pub(crate) fn store(&self) -> RedisStore {
        self.builder().build().unwrap()
    }

    /// Sends a command on a connection of its own.
    pub(crate) async fn command(&self, words: &[&str]) -> Value {
        self.try_command(words).await.unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    pub(crate) async fn try_command(&self, words: &[&str]) -> redis::RedisResult<Value> {
        let client = redis::Client::open(self.url()).unwrap();
        let config =
            redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(20)));
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut command = Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query_async(&mut connection).await
    }

    /// Sends a command whose answer is text.
    pub(crate) async fn text(&self, words: &[&str]) -> String {
        redis::from_redis_value(self.command(words).await).unwrap()
    }
}

pub(crate) fn key(n: usize) -> Key {
    Key::from_text(format!("op#{n}"))
}

pub(crate) fn owner(n: u128) -> Owner {
    Owner::from_bits(n)
}

/// The deadline of a call that may take so many milliseconds.
pub(crate) fn within(millis: u64) -> Timestamp {
    SystemClock.now().plus(Duration::from_millis(millis))
}

pub(crate) fn soon() -> Timestamp {
    within(60_000)
}

pub(crate) fn claimed(by: u128) -> IdempotencyRecord {
    let now = SystemClock.now();
    let mut record =
        IdempotencyRecord::new(Status::InProgress, now.plus(Duration::from_secs(3600)));
    record.owner = Some(owner(by));
    record.lease_until = Some(now.plus(Duration::from_secs(60)));
    record
}

pub(crate) fn completed(by: u128, result: &str) -> IdempotencyRecord {
    let mut record = claimed(by);
    record.status = Status::Completed;
    record.lease_until = None;
    record.result = Some(result.into());
    record
}

pub(crate) fn claim(n: usize, by: u128) -> Write {
    Write::new(key(n), Guard::Absent, Some(claimed(by)))
}

pub(crate) fn complete(n: usize, by: u128, result: &str) -> Write {
    Write::new(key(n), Guard::OwnedBy(owner(by)), Some(completed(by, result)))
}

/// Sends one write.
pub(crate) async fn one(store: &RedisStore, write: Write, millis: u64) -> Verdict {
    store.write(&[write], within(millis)).await.pop().unwrap()
}

/// Sends one write, which is to succeed.
pub(crate) async fn wrote(store: &RedisStore, write: Write) {
    written(&[one(store, write, 60_000).await]);
}

#[track_caller]
pub(crate) fn written(verdicts: &[Verdict]) {
    let is_written = |verdict: &Verdict| matches!(verdict, Verdict::Written);
    assert!(verdicts.iter().all(is_written), "{verdicts:?}");
}

/// The error of this kind, after which the write may have been applied or not.
#[track_caller]
pub(crate) fn unknown(verdict: Verdict, kind: StoreErrorKind, in_doubt: bool) -> StoreError {
    let Verdict::Unknown(error) = verdict else { panic!("{verdict:?}") };
    assert_eq!((error.kind(), error.may_have_applied()), (kind, in_doubt), "{error}");
    assert!(!format!("{error} {error:?}").contains("op#"), "no key is in {error:?}");
    error
}
