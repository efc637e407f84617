//! The memory store conforms.

use lambda_idempotency_core::memory::MemoryStore;

async fn make() -> MemoryStore {
    MemoryStore::new()
}

lambda_idempotency_testkit::store_conformance!(make);
