//! The settings of a store that stores results in another form.

use std::sync::Arc;

use lambda_idempotency_core::clock::{Clock, SystemClock};

use crate::{
    codec::{Codec, Elsewhere, MAX_BYTES},
    forms::Forms,
    key_provider::KeyProvider,
    result_store::ResultStore,
};

/// A store around another, which stores results in another form: see the [crate](crate).
///
/// Without a setting, results are stored as they are, and all forms that need no setting are read.
///
/// | setting | what is stored | default |
/// |---|---|---|
/// | [`compress_above`](Self::compress_above) | longer results compressed | as they are |
/// | [`encrypt_with`](Self::encrypt_with) | all results encrypted, and steps, messages and payloads | not encrypted |
/// | [`decrypt_with`](Self::decrypt_with) | no change: encrypted results can be read | none can |
/// | [`offload_above`](Self::offload_above) | a reference to longer results, which are kept elsewhere | none |
/// | [`status_only`](Self::status_only) | no results | results |
/// | [`max_bytes`](Self::max_bytes) | no longer results | 8 MiB |
/// | [`clock`](Self::clock) | no change: deadlines are measured on it | the system's |
#[derive(Clone, Debug)]
pub struct Results<S> {
    pub(crate) store: S,
    pub(crate) codec: Arc<Codec>,
}

impl<S> Results<S> {
    /// Stores records in `store`.
    #[must_use]
    pub fn new(store: S) -> Self {
        let codec = Codec {
            compress_above: None,
            max_bytes: MAX_BYTES,
            status_only: false,
            encrypts: false,
            keys: None,
            elsewhere: None,
            clock: Arc::new(SystemClock),
            forms: Forms::default(),
        };
        Self { store, codec: Arc::new(codec) }
    }

    /// Compresses results of more than `bytes` bytes with zlib, if that makes them smaller. Default: no result
    /// is compressed. 1024 is a good value: a DynamoDB item is billed by the kilobyte.
    ///
    /// Compressed results can be read without this setting.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::Results;
    ///
    /// let store = Results::new(MemoryStore::new()).compress_above(1024);
    /// ```
    #[must_use]
    pub fn compress_above(mut self, bytes: usize) -> Self {
        Arc::make_mut(&mut self.codec).compress_above = Some(bytes);
        self
    }

    /// Encrypts all results, the messages of permanent failures, and what else a record carries (what its steps returned,
    /// messages that are not sent yet, a payload), with the current key of `keys`. Reads what was encrypted with any key
    /// that `keys` finds, and what is not encrypted. Default: nothing is encrypted.
    ///
    /// If several functions share a table, first deploy all of them with [`decrypt_with`](Self::decrypt_with).
    ///
    /// A result that cannot be encrypted, because the key provider fails or does not answer in half of the call's time,
    /// is not stored; that the work was done is. A record is not written if something else of it cannot be encrypted.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::{EncryptionKey, InvalidEncryptionKey, LocalKeys, Results};
    ///
    /// # fn secret() -> Vec<u8> { vec![7; 32] }
    /// // 32 random bytes, from a secret store.
    /// let keys = LocalKeys::new(EncryptionKey::new("2026-11", &secret())?);
    /// let store = Results::new(MemoryStore::new()).encrypt_with(keys);
    /// # Ok::<(), InvalidEncryptionKey>(())
    /// ```
    #[must_use]
    pub fn encrypt_with(mut self, keys: impl KeyProvider) -> Self {
        let codec = Arc::make_mut(&mut self.codec);
        codec.encrypts = true;
        codec.keys = Some(Arc::new(keys));
        self
    }

    /// Reads results that other functions have encrypted, and encrypts none. Replaces
    /// [`encrypt_with`](Self::encrypt_with).
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::{EncryptionKey, InvalidEncryptionKey, LocalKeys, Results};
    ///
    /// # fn secret() -> Vec<u8> { vec![7; 32] }
    /// let keys = LocalKeys::new(EncryptionKey::new("2026-11", &secret())?);
    /// let store = Results::new(MemoryStore::new()).decrypt_with(keys);
    /// # Ok::<(), InvalidEncryptionKey>(())
    /// ```
    #[must_use]
    pub fn decrypt_with(mut self, keys: impl KeyProvider) -> Self {
        let codec = Arc::make_mut(&mut self.codec);
        codec.encrypts = false;
        codec.keys = Some(Arc::new(keys));
        self
    }

    /// Keeps results in `results` that are longer than `bytes` bytes after they were compressed and encrypted; the
    /// record has a reference. Default: all results are in their records. `usize::MAX` only reads what other functions
    /// keep there.
    ///
    /// A result that cannot be put there in half of the call's time is not stored; that the work was done is. A result
    /// that is not there any more counts as not kept. While `results` does not answer, a delivery whose work was done is
    /// returned, and its handler is not called.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::{MemoryResults, Results};
    ///
    /// let store = Results::new(MemoryStore::new()).offload_above(4096, MemoryResults::default());
    /// ```
    #[must_use]
    pub fn offload_above(mut self, bytes: usize, results: impl ResultStore) -> Self {
        Arc::make_mut(&mut self.codec).elsewhere = Some(Elsewhere::new(bytes, results));
        self
    }

    /// Stores no results, only that the work was done. Results that are stored already are read.
    ///
    /// A later call of `run` then gets the error that the result was not kept, and a later HTTP request the status
    /// 409. Records of queues and streams need no result.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::Results;
    ///
    /// let store = Results::new(MemoryStore::new()).status_only();
    /// ```
    #[must_use]
    pub fn status_only(mut self) -> Self {
        Arc::make_mut(&mut self.codec).status_only = true;
        self
    }

    /// The most bytes of a result before it is compressed. A larger one is not stored; that the work was done is. A
    /// stored one that decompresses to more is not read. Default: 8 MiB.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::Results;
    ///
    /// let store = Results::new(MemoryStore::new()).compress_above(1024).max_bytes(256 * 1024);
    /// ```
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        Arc::make_mut(&mut self.codec).max_bytes = bytes;
        self
    }

    /// Measures deadlines on this clock, for tests. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        Arc::make_mut(&mut self.codec).clock = Arc::new(clock);
        self
    }

    /// The store around which this one is.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }
}
