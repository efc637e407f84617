//! A store of your own, in the memory of a process, with the conformance suite that tests it. A store
//! applies conditional writes and takes no decisions.
//!
//! ```console
//! $ cargo test -p lambda-idempotency --example custom_store     # the suite
//! $ cargo run -p lambda-idempotency --example custom_store      # one order, delivered twice
//! ```

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lambda_idempotency::{
    Failure, Idempotency, Operation, clock::Timestamp, source::Invoke, store::*, testing,
};
use serde_json::{Value, json};

#[derive(Default)]
struct MapStore(Mutex<HashMap<Key, IdempotencyRecord>>);

impl Store for MapStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn write<'a>(&'a self, writes: &'a [Write], _: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Each write is independent: one whose condition fails does not affect the others.
        let apply = |write: &Write| {
            let found = records.get(&write.key);
            match &write.record {
                _ if write.effects.is_some() => return StoreError::without_effects(write).into(),
                _ if !write.applies(found) => return Verdict::Found(found.cloned()),
                Some(record) => records.insert(write.key.clone(), record.clone()),
                None => records.remove(&write.key),
            };
            Verdict::Written
        };
        let verdicts = writes.iter().map(apply).collect();
        Box::pin(async move { verdicts })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        _: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = keys.iter().map(|key| Ok(records.get(key).cloned())).collect();
        Box::pin(async move { found })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let idempotency = Idempotency::new(MapStore::default());
    let place = Operation::new("place-order").key("orderId");
    let function = idempotency.on(Invoke::new(), &place, async |_: Value, _| {
        println!("placed");
        Ok::<_, Failure>(())
    })?;
    for _ in 0..2 {
        testing::invoke(&function, &json!({ "orderId": "o-1" })).await?;
    }
    Ok(())
}

#[cfg(test)]
lambda_idempotency_testkit::store_conformance!(async || MapStore::default());
