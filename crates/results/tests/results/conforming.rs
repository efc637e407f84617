//! The conformance suite, for each way of storing results.

use lambda_idempotency_core::memory::MemoryStore;
use lambda_idempotency_results::{MemoryResults, Results};
use lambda_idempotency_testkit::{browse_conformance, store_conformance};

use crate::support::keys;

type Plain = Results<MemoryStore>;

macro_rules! conforming {
    ($($name:ident: $with:expr;)*) => {
        $(mod $name {
            use super::*;

            async fn store() -> Plain {
                let with: fn(Plain) -> Plain = $with;
                with(Results::new(MemoryStore::new()))
            }

            store_conformance!(store);
            browse_conformance!(store);
        })*
    };
}

conforming! {
    plain: |plain| plain;
    compressed: |plain| plain.compress_above(0);
    // With compression, because the text of what is encrypted is a third longer, and too long for the store.
    encrypted: |plain| plain.compress_above(1024).encrypt_with(keys(1));
    elsewhere: |plain| plain.offload_above(0, MemoryResults::default());
    encrypted_elsewhere: |plain| {
        plain.encrypt_with(keys(1)).offload_above(100, MemoryResults::default())
    };
}
