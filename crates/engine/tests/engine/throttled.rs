//! A store with a throttled partition.

use std::time::Duration;

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Clock, Timestamp},
    record::IdempotencyRecord,
    store::{Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use crate::support::World;

/// How long after its call deadline a call returns, because timers are late and processors busy.
const LATE: Duration = Duration::from_millis(50);

/// Applies all writes except those that are `hot`, and then returns only after the call deadline.
pub(crate) struct Throttled {
    pub(crate) world: World,
    pub(crate) hot: fn(&Write) -> bool,
}

impl Store for Throttled {
    fn capabilities(&self) -> Capabilities {
        self.world.store.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut verdicts = Vec::new();
            for write in writes {
                verdicts.extend(if (self.hot)(write) {
                    let error = StoreError::new(StoreErrorKind::Throttled, "still");
                    vec![Verdict::Unknown(error)]
                } else {
                    self.world.store.write(std::slice::from_ref(write), call_deadline).await
                });
            }
            if writes.iter().any(self.hot) {
                let clock = &self.world.clock;
                clock.sleep(call_deadline.plus(LATE).since(clock.now())).await;
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.world.store.read(keys, call_deadline)
    }
}
