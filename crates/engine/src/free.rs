//! Deletes the idempotency record of a key, so that its next delivery is new work.

use std::slice::from_ref;

use lambda_idempotency_core::{
    admission::{Claim, Finding, Freed, free},
    policy::Policy,
    store::{StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_keys::Key;

use crate::{
    batch::Engine,
    driver::{read_contained, write_contained},
    machine::{FIRST_CALL, each, unanswered},
};

/// Why a key was not freed.
#[derive(Clone, Debug)]
pub enum NotFreed {
    /// A worker holds the key, the record has messages that are not known to be sent and would be lost, or the key belongs to
    /// another application.
    Found(Finding),
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
        let found = read_contained(store, from_ref(key), until).await;
        let found = each(found, || Err(unanswered())).next();
        let found = found.unwrap_or_else(|| Err(unanswered())).map_err(NotFreed::Store)?;
        let claim = Claim::reading(parts.application.clone(), policy.clock_skew);
        let may_free = |found| free(&claim, found, clock.now()).map_err(NotFreed::Found);
        let Some((guard, was)) = may_free(found.as_ref())? else {
            return Ok(Freed::WasFree);
        };
        if let Some(found) = &found {
            // Before the deletion: another invocation may have read the record and not have kept it yet.
            parts.completed.free(key, found);
        }
        let mut writes = [Write::new(key.clone(), guard, None)];
        let until = clock.now().plus(FIRST_CALL);
        let verdicts = write_contained(store, &mut writes, until).await;
        match verdicts.into_iter().next() {
            Some(Verdict::Written) => Ok(was),
            Some(Verdict::Found(found)) => {
                // Whoever has changed it may be at work, or has finished work that nobody asked to free.
                may_free(found.as_ref())?;
                Err(NotFreed::Store(StoreError::new(
                    StoreErrorKind::Contended,
                    "the record of the key changed while it was being freed; look whether it is still to be freed",
                )))
            }
            Some(Verdict::Unknown(error)) => Err(NotFreed::Store(error)),
            Some(Verdict::EffectRefused(_)) | None => Err(NotFreed::Store(unanswered())),
        }
    }
}
