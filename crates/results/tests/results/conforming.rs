//! The conformance suite, for each way of storing results.

use lambda_idempotency_core::memory::MemoryStore;
use lambda_idempotency_results::{EncryptionKey, LocalKeys, MemoryResults, Results};
use lambda_idempotency_testkit::{browse_conformance, store_conformance};

mod plain {
    use super::*;

    async fn store() -> Results<MemoryStore> {
        Results::new(MemoryStore::new())
    }

    store_conformance!(store);
    browse_conformance!(store);
}

mod compressed {
    use super::*;

    async fn store() -> Results<MemoryStore> {
        Results::new(MemoryStore::new()).compress_above(0)
    }

    store_conformance!(store);
    browse_conformance!(store);
}

mod encrypted {
    use super::*;

    /// With compression, because the text of what is encrypted is a third longer, and too long for the store.
    async fn store() -> Results<MemoryStore> {
        let key = EncryptionKey::new("2026-11", &[7; 32]).expect("a key");
        Results::new(MemoryStore::new()).compress_above(1024).encrypt_with(LocalKeys::new(key))
    }

    store_conformance!(store);
    browse_conformance!(store);
}

mod elsewhere {
    use super::*;

    async fn store() -> Results<MemoryStore> {
        Results::new(MemoryStore::new()).offload_above(0, MemoryResults::default())
    }

    store_conformance!(store);
    browse_conformance!(store);
}

mod encrypted_elsewhere {
    use super::*;

    async fn store() -> Results<MemoryStore> {
        let key = EncryptionKey::new("2026-11", &[7; 32]).expect("a key");
        Results::new(MemoryStore::new())
            .encrypt_with(LocalKeys::new(key))
            .offload_above(100, MemoryResults::default())
    }

    store_conformance!(store);
    browse_conformance!(store);
}
