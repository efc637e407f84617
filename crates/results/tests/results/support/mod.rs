//! Helpers of the tests.

use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::{IdempotencyRecord, Json, Owner, Status},
    store::{Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_results::{EncryptionKey, LocalKeys, Results};

pub(crate) fn soon() -> Timestamp {
    SystemClock.now().plus(std::time::Duration::from_secs(5))
}

pub(crate) fn key() -> Key {
    Key::from_text("report#1")
}

pub(crate) fn owner(bits: u128) -> Owner {
    Owner::from_bits(bits)
}

/// A record that `owner(1)` completed.
pub(crate) fn completed(result: impl Into<String>) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(4_000_000_000));
    record.owner = Some(owner(1));
    record.result = Some(result.into().into());
    record
}

/// A claim of `owner(2)`.
pub(crate) fn claim() -> IdempotencyRecord {
    let mut claim = IdempotencyRecord::new(Status::InProgress, Timestamp::from_secs(4_000_000_000));
    claim.owner = Some(owner(2));
    claim
}

pub(crate) type Field = fn(&mut IdempotencyRecord) -> &mut Option<Json>;

/// The fields of a record that are encrypted together with results; the result is the last.
pub(crate) const FIELDS: [Field; 4] = [
    |record| &mut record.steps,
    |record| &mut record.outbox,
    |record| &mut record.payload,
    |record| &mut record.result,
];

/// A completed record that carries a secret in one field.
pub(crate) fn carrying(field: Field) -> IdempotencyRecord {
    let mut record = completed("1");
    record.result = None;
    *field(&mut record) = Some("{\"s3cr3t\":1}".into());
    record
}

/// Keys of which this one is the current one, under the id `k1`.
pub(crate) fn keys(byte: u8) -> LocalKeys {
    LocalKeys::new(EncryptionKey::new("k1", &[byte; 32]).unwrap())
}

/// A store that encrypts with `keys(1)`.
pub(crate) fn encrypted() -> Results<MemoryStore> {
    Results::new(MemoryStore::new()).encrypt_with(keys(1))
}

/// The same records under other settings.
pub(crate) async fn moved(
    from: &Results<MemoryStore>,
    to: Results<MemoryStore>,
) -> Results<MemoryStore> {
    to.store().insert(key(), get(from.store()).await.unwrap().unwrap());
    to
}

/// Writes a record under `key()`, which has none.
pub(crate) async fn put(store: &impl Store, record: &IdempotencyRecord) -> Verdict {
    let write = Write::new(key(), Guard::Absent, Some(record.clone()));
    store.write(&[write], soon()).await.pop().unwrap()
}

/// Reads `key()`.
pub(crate) async fn get(store: &impl Store) -> Result<Option<IdempotencyRecord>, StoreError> {
    store.read(&[key()], soon()).await.pop().unwrap()
}

/// The result that a store answers with.
pub(crate) async fn result(store: &impl Store) -> Option<String> {
    get(store).await.unwrap().unwrap().result.map(|result| result.to_string())
}

/// What the inner store has of the result.
pub(crate) async fn stored(results: &Results<MemoryStore>) -> Option<String> {
    result(results.store()).await
}

/// Replaces what the inner store has of the result.
pub(crate) async fn tamper(results: &Results<MemoryStore>, with: impl Into<String>) {
    let mut record = get(results.store()).await.unwrap().unwrap();
    record.result = Some(with.into().into());
    results.store().insert(key(), record);
}

/// A JSON text of about this many bytes, which compresses well.
pub(crate) fn long(bytes: usize) -> String {
    format!("[{}0]", "0,".repeat(bytes / 2))
}
