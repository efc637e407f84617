//! Claims and completions for tests of stores, and what the stores say of them.

use std::{fmt::Display, time::Duration};

use lambda_idempotency_core::{
    clock::{Clock, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, Store, StoreError, StoreErrorKind, Verdict, Write},
};

pub(crate) fn key(name: impl Display) -> Key {
    Key::from_text(format!("op#{name}"))
}

pub(crate) fn owner(by: u128) -> Owner {
    Owner::from_bits(by)
}

/// The deadline of a call that may take so many milliseconds.
pub(crate) fn within(millis: u64) -> Timestamp {
    SystemClock.now().plus(Duration::from_millis(millis))
}

/// The deadline of a call that is not to wait long.
pub(crate) fn in_secs(secs: u64) -> Timestamp {
    within(1000 * secs)
}

pub(crate) fn claimed(by: u128) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::InProgress, in_secs(3600));
    record.owner = Some(owner(by));
    record.lease_until = Some(in_secs(60));
    record
}

pub(crate) fn completed(by: u128) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, in_secs(3600));
    record.owner = Some(owner(by));
    record.result = Some("{\"charged\":true}".into());
    record
}

pub(crate) fn claim(name: impl Display, by: u128) -> Write {
    Write::new(key(name), Guard::Absent, Some(claimed(by)))
}

pub(crate) fn complete(name: impl Display, by: u128) -> Write {
    Write::new(key(name), Guard::OwnedBy(owner(by)), Some(completed(by)))
}

/// Sends one write.
pub(crate) async fn one(store: &impl Store, write: Write, deadline: Timestamp) -> Verdict {
    store.write(&[write], deadline).await.pop().unwrap()
}

/// Sends one write, which is to succeed.
pub(crate) async fn wrote(store: &impl Store, write: Write) {
    written(&one(store, write, in_secs(60)).await);
}

pub(crate) async fn stored(store: &impl Store, name: impl Display) -> Option<IdempotencyRecord> {
    store.read(&[key(name)], in_secs(60)).await.pop().unwrap().unwrap()
}

#[track_caller]
pub(crate) fn written(verdict: &Verdict) {
    assert!(matches!(verdict, Verdict::Written), "{verdict:?}");
}

#[track_caller]
pub(crate) fn error_of(verdict: Verdict) -> StoreError {
    match verdict {
        Verdict::Unknown(error) => error,
        other => panic!("an error was expected: {other:?}"),
    }
}

/// The error of this kind, after which the write may have been applied or not.
#[track_caller]
pub(crate) fn unknown(verdict: Verdict, kind: StoreErrorKind, in_doubt: bool) -> StoreError {
    let error = error_of(verdict);
    let told = (error.kind(), error.may_have_applied());
    assert_eq!(told, (kind, in_doubt), "{error}: {error:?}");
    assert!(!format!("{error} {error:?}").contains("op#"), "no key is in {error:?}");
    error
}
