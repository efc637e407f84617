//! Where encryption keys come from.

use std::{collections::HashMap, sync::Arc};

use lambda_idempotency_core::clock::{BoxFuture, Timestamp};

use crate::{encryption::EncryptionKey, unreadable::BoxError};

/// Has the keys with which results are encrypted: [`LocalKeys`], or your own.
///
/// A provider for a service, such as AWS KMS, keeps its keys in memory: both methods are called for each stored
/// result. A call that is not answered at its deadline is dropped. A result that cannot be encrypted is not stored, but
/// that the work was done is.
///
/// ```
/// use lambda_idempotency_core::clock::{BoxFuture, Timestamp};
/// use lambda_idempotency_results::{BoxError, EncryptionKey, KeyProvider};
///
/// /// One key, which is fetched before the function starts.
/// struct Fetched(EncryptionKey);
///
/// impl KeyProvider for Fetched {
///     fn current(&self, _: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>> {
///         Box::pin(async { Ok(self.0.clone()) })
///     }
///
///     fn find<'a>(
///         &'a self,
///         id: &'a str,
///         _: Timestamp,
///     ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>> {
///         Box::pin(async move { Ok((self.0.id() == id).then(|| self.0.clone())) })
///     }
/// }
/// ```
pub trait KeyProvider: Send + Sync + 'static {
    /// The key with which results are encrypted now.
    fn current(&self, call_deadline: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>>;

    /// The key with this id, the current one or an older one; `None` if there is none. The id comes from the table: do
    /// not pass it on to a service that decrypts with keys of others, such as AWS KMS, unless it is one of yours.
    fn find<'a>(
        &'a self,
        id: &'a str,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>>;
}

impl<K: KeyProvider + ?Sized> KeyProvider for Arc<K> {
    fn current(&self, call_deadline: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>> {
        (**self).current(call_deadline)
    }

    fn find<'a>(
        &'a self,
        id: &'a str,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>> {
        (**self).find(id, call_deadline)
    }
}

/// Keys in memory: one that encrypts, and older ones with which results can still be read.
///
/// To change the key, first add the new one as an older one in all functions that share the table, then make it the
/// current one, and take the old one away when the retention of its results is over.
///
/// ```
/// use lambda_idempotency_core::memory::MemoryStore;
/// use lambda_idempotency_results::{EncryptionKey, InvalidEncryptionKey, LocalKeys, Results};
///
/// # fn secret(_: &str) -> Vec<u8> { vec![7; 32] }
/// let keys = LocalKeys::new(EncryptionKey::new("2026-12", &secret("2026-12"))?)
///     .with_older(EncryptionKey::new("2026-11", &secret("2026-11"))?);
/// let store = Results::new(MemoryStore::new()).encrypt_with(keys);
/// # Ok::<(), InvalidEncryptionKey>(())
/// ```
#[derive(Clone, Debug)]
pub struct LocalKeys {
    current: EncryptionKey,
    older: HashMap<Arc<str>, EncryptionKey>,
}

impl LocalKeys {
    /// One key.
    #[must_use]
    pub fn new(current: EncryptionKey) -> Self {
        Self { current, older: HashMap::new() }
    }

    /// Adds a key that does not encrypt, but reads what was encrypted with it.
    #[must_use]
    pub fn with_older(mut self, key: EncryptionKey) -> Self {
        self.older.insert(key.shared_id(), key);
        self
    }
}

impl KeyProvider for LocalKeys {
    fn current(&self, _: Timestamp) -> BoxFuture<'_, Result<EncryptionKey, BoxError>> {
        Box::pin(async { Ok(self.current.clone()) })
    }

    fn find<'a>(
        &'a self,
        id: &'a str,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EncryptionKey>, BoxError>> {
        Box::pin(async move {
            let current = (self.current.id() == id).then_some(&self.current);
            Ok(current.or_else(|| self.older.get(id)).cloned())
        })
    }
}
