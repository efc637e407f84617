//! Helpers of the scenarios.

use std::{error::Error, fmt::Write as _, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::{Clock, SystemClock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Owner, Provenance, Status, Worker},
    store::{Guard, Store, StoreError, Verdict, Write},
};

/// The time of one call: long, because the suite does not test how long calls take.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);

/// One fresh key of a store.
pub(super) struct Slot<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) key: Key,
}

impl<'a> Slot<'a> {
    pub(super) fn fresh(store: &'a dyn Store) -> Self {
        Self { store, key: fresh_key() }
    }

    pub(super) fn named(store: &'a dyn Store, key: impl Into<String>) -> Self {
        Self { store, key: Key::from_text(key.into()) }
    }

    /// Several fresh keys.
    pub(super) fn several(store: &'a dyn Store, count: usize) -> Vec<Self> {
        (0..count).map(|_| Self::fresh(store)).collect()
    }

    /// A fresh key that holds `record`.
    pub(super) async fn with(store: &'a dyn Store, record: &IdempotencyRecord) -> Self {
        let slot = Self::fresh(store);
        slot.given(record).await;
        slot
    }

    /// Writes `record` to this key, which has none.
    pub(super) async fn given(&self, record: &IdempotencyRecord) {
        let verdict = self.write(Guard::Absent, Some(record)).await;
        written(verdict, "a fresh key has no record, so a write under `Absent` is applied");
    }

    /// Writes this key alone.
    pub(super) async fn write(&self, guard: Guard, record: Option<&IdempotencyRecord>) -> Verdict {
        let mut verdicts = write_all(self.store, &[self.asks(guard, record)]).await;
        verdicts.pop().expect("`write_all` checked that there is one verdict")
    }

    /// The write of this key, for a batch.
    pub(super) fn asks(&self, guard: Guard, record: Option<&IdempotencyRecord>) -> Write {
        Write::new(self.key.clone(), guard, record.cloned())
    }

    /// The record that is stored now.
    pub(super) async fn read(&self) -> Option<IdempotencyRecord> {
        read_all(self.store, std::slice::from_ref(&self.key)).await.pop().flatten()
    }

    /// Asserts which record is stored now.
    pub(super) async fn holds(&self, expected: Option<&IdempotencyRecord>, why: &str) {
        same(self.read().await.as_ref(), expected, why);
    }

    /// Sends a write that must be refused, must return the stored record, and must not change it.
    pub(super) async fn refuses(
        &self,
        guard: Guard,
        record: Option<&IdempotencyRecord>,
        there: Option<&IdempotencyRecord>,
        why: &str,
    ) {
        found(self.write(guard, record).await, there, why);
        self.holds(there, &format!("a refused write changes nothing ({why})")).await;
    }

    /// Sends a write that must be applied.
    pub(super) async fn accepts(
        &self,
        guard: Guard,
        record: Option<&IdempotencyRecord>,
        why: &str,
    ) {
        written(self.write(guard, record).await, why);
        self.holds(record, &format!("the written record is stored ({why})")).await;
    }
}

/// A key that no other test has.
pub(super) fn fresh_key() -> Key {
    Key::from_text(format!("conformance#{}", token()))
}

/// A fresh owner.
pub(super) fn token() -> Owner {
    Owner::random().expect("randomness from the operating system")
}

/// The current time: the real one, because a store's server may remove expired records by it.
pub(super) fn now() -> Timestamp {
    SystemClock.now()
}

pub(super) fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A record in progress that is held for another minute.
pub(super) fn in_progress(owner: Owner) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600)));
    record.owner = Some(owner);
    record.lease_until = Some(now().plus(secs(60)));
    record
}

/// A record that `owner` completed.
pub(super) fn completed(owner: Owner, result: &str) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, now().plus(secs(3600)));
    record.owner = Some(owner);
    record.result = Some(result.into());
    record
}

/// A record that `owner` released after a failure.
pub(super) fn released(owner: Owner) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::InProgress, now().plus(secs(3600)));
    record.last_owner = Some(owner);
    record.lease_until = Some(Timestamp::from_millis(1));
    record.failed_attempts = 1;
    record.error_type = Some("Declined".into());
    record
}

/// A provenance in which everything is known.
pub(super) fn whole_provenance() -> Provenance {
    let mut worker = Worker::default().with_request_id("8f5d9c3e-6c3a-4a52-b0ae-9d7f4a8c1b22");
    worker.function = Some("payments".into());
    worker.version = Some("$LATEST".into());
    worker.log_stream = Some("2026/11/22/[$LATEST]0123456789abcdef0123456789abcdef".into());
    Provenance::new(Timestamp::from_millis(1_700_000_000_001), Arc::new(worker))
        .with_record("sqs", "2e1424d4-f796-459a-8184-9c92662be6da".into())
}

pub(super) async fn write_all(store: &dyn Store, writes: &[Write]) -> Vec<Verdict> {
    let verdicts = store.write(writes, now().plus(PATIENCE)).await;
    assert_eq!(
        verdicts.len(),
        writes.len(),
        "a store returns one verdict for each write, in order: got {} verdicts for {} writes",
        verdicts.len(),
        writes.len()
    );
    verdicts
}

pub(super) async fn read_all(store: &dyn Store, keys: &[Key]) -> Vec<Option<IdempotencyRecord>> {
    let answers = store.read(keys, now().plus(PATIENCE)).await;
    assert_eq!(
        answers.len(),
        keys.len(),
        "a store returns one answer for each key, in order: got {} answers for {} keys",
        answers.len(),
        keys.len()
    );
    answers
        .into_iter()
        .map(|answer| match answer {
            Ok(record) => record,
            Err(error) => panic!("a read failed: {}", explain(&error)),
        })
        .collect()
}

#[track_caller]
pub(super) fn written(verdict: Verdict, why: &str) {
    match verdict {
        Verdict::Written => {}
        Verdict::Found(there) => {
            panic!("{why}\n  expected: Written\n  got:      Found({})", describe(there.as_ref()))
        }
        Verdict::EffectRefused(refused) => {
            panic!("{why}\n  expected: Written\n  got:      EffectRefused({refused})")
        }
        Verdict::Unknown(error) => {
            panic!("{why}\n  expected: Written\n  got:      Unknown({})", explain(&error))
        }
    }
}

#[track_caller]
pub(super) fn found(verdict: Verdict, expected: Option<&IdempotencyRecord>, why: &str) {
    match verdict {
        Verdict::Found(there) => same(there.as_ref(), expected, why),
        Verdict::Written => {
            panic!("{why}\n  expected: Found({})\n  got:      Written", describe(expected))
        }
        Verdict::EffectRefused(refused) => panic!(
            "{why}\n  expected: Found({})\n  got:      EffectRefused({refused})",
            describe(expected)
        ),
        Verdict::Unknown(error) => panic!(
            "{why}\n  expected: Found({})\n  got:      Unknown({})",
            describe(expected),
            explain(&error)
        ),
    }
}

#[track_caller]
pub(super) fn same(
    actual: Option<&IdempotencyRecord>,
    expected: Option<&IdempotencyRecord>,
    why: &str,
) {
    if actual == expected {
        return;
    }
    let fields = match (actual, expected) {
        (Some(actual), Some(expected)) => differing(actual, expected),
        _ => String::new(),
    };
    panic!("{why}\n  expected: {}\n  got:      {}{fields}", describe(expected), describe(actual));
}

fn differing(actual: &IdempotencyRecord, expected: &IdempotencyRecord) -> String {
    let mut out = String::new();
    let mut check = |name: &str, same: bool| {
        if !same {
            let _ = write!(out, "\n  differs:  {name}");
        }
    };
    check("status", actual.status == expected.status);
    check("owner", actual.owner == expected.owner);
    check("last_owner", actual.last_owner == expected.last_owner);
    check("failed_attempts", actual.failed_attempts == expected.failed_attempts);
    check("lost_attempts", actual.lost_attempts == expected.lost_attempts);
    check("consecutive_losses", actual.consecutive_losses == expected.consecutive_losses);
    check("fence", actual.fence == expected.fence);
    check("lease_until", actual.lease_until == expected.lease_until);
    check("expires_at", actual.expires_at == expected.expires_at);
    check("fingerprint", actual.fingerprint == expected.fingerprint);
    check("result", actual.result == expected.result);
    check("steps", actual.steps == expected.steps);
    check("outbox", actual.outbox == expected.outbox);
    check("payload", actual.payload == expected.payload);
    check("error_type", actual.error_type == expected.error_type);
    check("application", actual.application == expected.application);
    check("provenance", actual.provenance == expected.provenance);
    out
}

/// A record as text, with a large result shortened.
pub(super) fn describe(record: Option<&IdempotencyRecord>) -> String {
    let Some(record) = record else { return "no record".to_owned() };
    let mut short = record.clone();
    if let Some(result) = record.result.as_ref().filter(|o| o.len() > 200) {
        let head: String = result.chars().take(40).collect();
        short.result = Some(format!("{head}... ({} bytes)", result.len()).into());
    }
    format!("{short:?}")
}

pub(super) fn explain(error: &StoreError) -> String {
    let mut out = format!("{:?}, {error}", error.kind());
    let mut source = error.source();
    while let Some(cause) = source {
        let _ = write!(out, ": {cause}");
        source = cause.source();
    }
    out
}
