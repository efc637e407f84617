//! Encrypted results: what is stored says nothing, and what was changed is not read.

use std::future;

use crate::support::{
    completed, encrypted, get, key, keys, long, moved, put, result, soon, stored, tamper,
};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    memory::MemoryStore,
    record::Status,
    store::{Guard, Store, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_results::{BoxError, EncryptionKey, KeyProvider, LocalKeys, Results};

fn local(id: &str, byte: u8) -> EncryptionKey {
    EncryptionKey::new(id, &[byte; 32]).unwrap()
}

#[tokio::test]
async fn a_large_result_and_a_long_message_are_compressed_before_they_are_encrypted() {
    for status in [Status::Completed, Status::PermanentlyFailed] {
        let store = encrypted().compress_above(1024);
        let mut record = completed(long(50_000));
        record.status = status;
        put(&store, &record).await;
        let text = stored(&store).await.unwrap();
        assert!(text.starts_with("\"lambda-idempotency:1 zlib,aes-256-gcm=k1 "), "{text}");
        assert!(text.len() < 500, "{}", text.len());
        assert_eq!(get(&store).await.unwrap(), Some(record));
    }
}
#[tokio::test]
async fn two_records_with_one_result_are_stored_differently() {
    let (one, other) = (encrypted(), encrypted());
    put(&one, &completed("1")).await;
    put(&other, &completed("1")).await;
    assert_ne!(stored(&one).await, stored(&other).await);
}

/// The errors of a read and of a claim.
async fn corrupt(store: &Results<MemoryStore>) -> String {
    let error = get(store).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    match put(store, &completed("2")).await {
        Verdict::Found(Some(own)) => {
            assert_eq!(own.result, completed("2").result, "its own record")
        }
        Verdict::Unknown(error) => {
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(!error.may_have_applied());
        }
        other => panic!("{other:?}"),
    }
    error.to_string()
}

#[tokio::test]
async fn each_changed_character_is_found() {
    let store = encrypted();
    put(&store, &completed("\"secret\"")).await;
    let text = stored(&store).await.unwrap();
    let begin = text.rfind(' ').unwrap() + 1;
    for at in begin..text.len() - 1 {
        for other in ["A", "B", "_"] {
            if &text[at..=at] == other {
                continue;
            }
            let mut changed = text.clone();
            changed.replace_range(at..=at, other);
            tamper(&store, changed).await;
            let said = corrupt(&store).await;
            assert!(!said.contains("secret"), "{said}");
        }
    }
}

#[tokio::test]
async fn keys_change_without_a_gap() {
    let inner = std::sync::Arc::new(MemoryStore::new());
    let with = |keys| Results::new(std::sync::Arc::clone(&inner)).encrypt_with(keys);
    let old = with(LocalKeys::new(local("k1", 1)));
    put(&old, &completed("1")).await;
    let new = with(LocalKeys::new(local("k2", 2)).with_older(local("k1", 1)));
    assert_eq!(result(&new).await.as_deref(), Some("1"));
    let write = Write::new(Key::from_text("b"), Guard::Absent, Some(completed("2")));
    new.write(&[write], soon()).await;
    let only_new = with(LocalKeys::new(local("k2", 2)));
    let read = only_new.read(&[Key::from_text("b")], soon()).await.pop().unwrap();
    assert_eq!(read.unwrap().unwrap().result.as_deref(), Some("2"));
    let error = get(&only_new).await.unwrap_err();
    assert!(error.to_string().contains("a key that the key provider does not have"), "{error}");
}

#[tokio::test]
async fn an_encrypted_result_is_not_read_without_its_key() {
    let store = encrypted();
    put(&store, &completed("1")).await;
    let plain = || Results::new(MemoryStore::new());
    for (other, said) in [
        (plain(), "this function has no keys"),
        (plain().decrypt_with(keys(2)), "its key has the id of another key"),
    ] {
        assert!(corrupt(&moved(&store, other).await).await.contains(said));
    }
}

#[tokio::test]
async fn a_function_can_read_encrypted_results_and_write_plain_ones() {
    let store = encrypted();
    put(&store, &completed("1")).await;
    let decrypts = || Results::new(MemoryStore::new()).decrypt_with(keys(1));
    let reads = moved(&store, decrypts()).await;
    assert_eq!(result(&reads).await.as_deref(), Some("1"));
    tamper(&store, "\"plain\"").await;
    assert_eq!(result(&store).await.as_deref(), Some("\"plain\""), "what was there before");
    let plain = decrypts();
    put(&plain, &completed("2")).await;
    assert_eq!(stored(&plain).await.as_deref(), Some("2"));
}

/// A key provider that cannot be reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keys {
    Fail,
    Hang,
}

impl Keys {
    fn answer<T>(self) -> BoxFuture<'static, Result<T, BoxError>>
    where
        T: Send + 'static,
    {
        match self {
            Self::Fail => Box::pin(async { Err("no connection".into()) }),
            Self::Hang => Box::pin(future::pending()),
        }
    }
}

impl KeyProvider for Keys {
    fn current(&self, _: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>> {
        self.answer()
    }

    fn find<'a>(
        &'a self,
        _: &'a str,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>> {
        self.answer()
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_key_provider_a_result_may_be_read_later() {
    let store = encrypted();
    put(&store, &completed("1")).await;
    for keys in [Keys::Fail, Keys::Hang] {
        let reads = moved(&store, Results::new(MemoryStore::new()).decrypt_with(keys)).await;
        let error = get(&reads).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::ResultUnavailable);
        assert!(error.is_transient() && !error.may_have_applied());
    }
}

/// I13: the completions of others are written at once, and not when the key provider answers.
#[tokio::test(start_paused = true)]
async fn no_other_write_waits_for_the_key_provider() {
    let store = Results::new(MemoryStore::new()).encrypt_with(Keys::Hang);
    let mut without_result = completed("1");
    without_result.result = None;
    let other = Key::from_text("other");
    let writes = [
        Write::new(key(), Guard::Absent, Some(completed("1"))),
        Write::new(other.clone(), Guard::Absent, Some(without_result)),
    ];
    let late = soon();
    let mut call = store.write(&writes, late);
    assert!(futures_util::poll!(&mut call).is_pending());
    let found = store.store().read(&[other], late).await.pop().unwrap();
    assert!(found.unwrap().is_some(), "it is stored while the other write waits");
    let verdicts = call.await;
    assert!(matches!(&verdicts[..], [Verdict::Unknown(_), Verdict::Written]), "{verdicts:?}");
}
