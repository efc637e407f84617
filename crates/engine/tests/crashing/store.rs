//! The store of a story, which logs the writes that it applies. A mutant breaks it, to test the checks.

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    memory::MemoryStore,
    record::{IdempotencyRecord, Owner},
    store::{Capabilities, Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use crate::log::Log;

/// How a store treats a write.
pub(crate) enum Treatment {
    /// Applies the write if its guard holds, as a store has to.
    Apply(Write),
    /// Applies the write without its guard.
    Force(Write),
    /// Reports the write as applied, and does not apply it.
    Forget,
    /// Applies the effects before it asks the guard.
    Early(Write),
}

pub(crate) type Mutant = fn(Write) -> Treatment;

pub(crate) struct Watched {
    memory: MemoryStore,
    mutant: Mutant,
    log: Log,
}

impl Watched {
    pub(crate) fn new(log: Log, mutant: Mutant) -> Self {
        Self { memory: MemoryStore::new(), mutant, log }
    }

    async fn treat(&self, write: Write, call_deadline: Timestamp) -> Verdict {
        let write = match (self.mutant)(write) {
            Treatment::Apply(write) => write,
            Treatment::Force(Write { key, record: Some(record), .. }) => {
                self.log.landed(&key, Some(&record));
                self.memory.insert(key, record);
                return Verdict::Written;
            }
            Treatment::Force(write) => write,
            Treatment::Forget => return Verdict::Written,
            Treatment::Early(write) => {
                let fresh = Key::from_text(format!("other#{}", Owner::random().unwrap()));
                let early = Write::new(fresh, Guard::Absent, write.record.clone());
                let early = early.with_effects(write.effects.clone());
                self.memory.write(&[early], call_deadline).await;
                write.with_effects(None)
            }
        };
        let verdict =
            self.memory.write(std::slice::from_ref(&write), call_deadline).await.remove(0);
        if matches!(verdict, Verdict::Written) {
            self.log.landed(&write.key, write.record.as_ref());
        }
        verdict
    }
}

impl Store for Watched {
    fn capabilities(&self) -> Capabilities {
        self.memory.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut verdicts = Vec::new();
            for write in writes {
                verdicts.push(self.treat(write.clone(), call_deadline).await);
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.memory.read(keys, call_deadline)
    }
}
