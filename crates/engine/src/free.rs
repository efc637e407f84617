//! Deletes the idempotency record of a key, so that its next delivery is new work; or removes only the record's payload.

use std::{slice::from_ref, sync::Arc};

use lambda_idempotency_core::{
    admission::{Freed, Freeing, free},
    clock::Timestamp,
    policy::Policy,
    record::IdempotencyRecord,
    store::{Guard, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use crate::{
    batch::Engine,
    machine::{FIRST_CALL, each, unanswered},
    store_calls,
};

/// Why a key was not freed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotFreed {
    /// A worker holds the key, or has left it held.
    Busy {
        /// Up to and including this instant.
        until: Timestamp,
    },
    /// The key belongs to another application.
    Foreign {
        /// The other application.
        application: Arc<str>,
    },
    /// The record has messages that are not known to be sent, which would be lost.
    Unsent,
    /// The store did not answer, refused, or had another record by then.
    Store(StoreError),
}

impl Engine {
    /// Deletes the record of `key`, if it is still the one that was read and nobody works on the key. This process
    /// forgets the completion as well.
    ///
    /// # Errors
    /// See [`NotFreed`]. Nothing was changed, unless the store's error
    /// [may have been applied](StoreError::may_have_applied).
    pub async fn free(&self, key: &Key, policy: &Policy) -> Result<Freed, NotFreed> {
        let parts = self.parts();
        let (store, clock) = (&*parts.store, &parts.clock);
        let until = clock.now().plus(FIRST_CALL);
        let found = store_calls::read(store, from_ref(key), until).await;
        let found = each(found, || Err(unanswered())).next();
        let found = found.unwrap_or_else(|| Err(unanswered())).map_err(NotFreed::Store)?;
        let Some((guard, was)) = self.may_free(found.as_ref(), policy)? else {
            return Ok(Freed::WasFree);
        };
        if let Some(found) = &found {
            // Before the deletion: another invocation may have read the record and not have kept it yet.
            parts.completed.free(key, found);
        }
        let mut writes = [Write::new(key.clone(), guard, None)];
        let until = clock.now().plus(FIRST_CALL);
        let verdicts = store_calls::write(store, &mut writes, until).await;
        match verdicts.into_iter().next() {
            Some(Verdict::Written) => Ok(was),
            Some(Verdict::Found(found)) => {
                // Whoever has changed it may be at work, or has finished work that nobody asked to free.
                self.may_free(found.as_ref(), policy)?;
                Err(NotFreed::Store(StoreError::new(
                    StoreErrorKind::Contended,
                    "the record of the key changed while it was being freed; look whether it is still to be freed",
                )))
            }
            Some(Verdict::Unknown(error)) => Err(NotFreed::Store(error)),
            Some(Verdict::EffectRefused(_)) | None => Err(NotFreed::Store(unanswered())),
        }
    }

    /// Under which guard the record may be deleted; `None` if there is none.
    fn may_free(
        &self,
        found: Option<&IdempotencyRecord>,
        policy: &Policy,
    ) -> Result<Option<(Guard, Freed)>, NotFreed> {
        let freeing = free(found, policy.clock_skew, self.clock().now());
        let ours = self.parts().application.as_ref();
        let theirs = found.and_then(|found| found.application.as_ref());
        match (freeing, theirs.filter(|theirs| ours != Some(*theirs))) {
            (Freeing::Nothing, _) => Ok(None),
            (Freeing::Delete { guard, was: Freed::WasFree }, _) => {
                Ok(Some((guard, Freed::WasFree)))
            }
            (_, Some(theirs)) => Err(NotFreed::Foreign { application: Arc::clone(theirs) }),
            (Freeing::Delete { guard, was }, None) => Ok(Some((guard, was))),
            (Freeing::Busy { until }, None) => Err(NotFreed::Busy { until }),
            (Freeing::Unsent, None) => Err(NotFreed::Unsent),
        }
    }
}
