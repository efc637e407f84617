//! The conformance suite, for each way of storing results.

use lambda_idempotency_core::memory::MemoryStore;
use lambda_idempotency_results::Results;
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
