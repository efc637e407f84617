//! What a store may expect of each call: that it is not empty, and names each key once. DynamoDB refuses other calls. And of
//! each write to a record that is there: it may leave what the claim has stored.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    record::IdempotencyRecord,
    store::{Capabilities, Extent, Guard, Store, StoreError, Verdict, Write},
};
use lambda_idempotency_keys::Key;

/// What went wrong in a test, in words. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Wrong(Arc<Mutex<Vec<String>>>);

impl Wrong {
    pub(crate) fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A store that checks what it is asked.
pub(crate) struct Contract<S> {
    pub(crate) inner: S,
    pub(crate) wrong: Wrong,
}

impl<S> Contract<S> {
    fn check<'k>(&self, keys: impl Iterator<Item = &'k Key>) {
        let (mut seen, mut is_empty) = (BTreeSet::new(), true);
        for key in keys {
            is_empty = false;
            if !seen.insert(key.as_str().to_owned()) {
                self.wrong.say(format!("{} is in one call twice", key.as_str()));
            }
        }
        if is_empty {
            self.wrong.say("a call of the store is empty");
        }
    }
}

impl<S: Store> Store for Contract<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn write<'a>(&'a self, writes: &'a [Write], until: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        self.check(writes.iter().map(|write| &write.key));
        self.inner.write(writes, until)
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.check(keys.iter());
        self.inner.read(keys, until)
    }
}

/// A store that checks whether what is written follows from the claim that is stored.
#[derive(Clone)]
pub(crate) struct Following<S> {
    pub(crate) inner: S,
    pub(crate) wrong: Wrong,
}

impl<S: Store> Store for Following<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn write<'a>(&'a self, writes: &'a [Write], until: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let keys: Vec<_> = writes.iter().map(|write| write.key.clone()).collect();
            let found = self.inner.read(&keys, until).await;
            let verdicts = self.inner.write(writes, until).await;
            for ((write, found), verdict) in writes.iter().zip(found).zip(&verdicts) {
                let (Verdict::Written, Ok(Some(claim))) = (verdict, found) else { continue };
                if !follows(write, &claim) {
                    self.wrong.say(format!("{write:?} does not follow from {claim:?}"));
                }
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        until: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        self.inner.read(keys, until)
    }
}

/// Whether a write has what it need not write again, as the record has it on which it is applied.
fn follows(write: &Write, claim: &IdempotencyRecord) -> bool {
    let Some(record) = &write.record else { return true };
    let mut rest = claim.clone();
    match (write.extent(), &write.guard) {
        (Extent::Record, Guard::OwnedBy(_)) => {}
        (Extent::Record, _) => return true,
        (Extent::Lease, _) => {
            (rest.lease_until, rest.expires_at) = (record.lease_until, record.expires_at);
            rest.steps.clone_from(&record.steps);
            return rest == *record;
        }
        (Extent::Outbox, _) => {
            rest.outbox = None;
            return rest == *record;
        }
    }
    let of_claim =
        |record: &IdempotencyRecord| (record.fingerprint.clone(), record.application.clone());
    let is_first = record.failed_attempts == 0 && record.lost_attempts == 0;
    let mut both = [record, claim].into_iter();
    (&claim.last_owner, &claim.result, &claim.outbox) == (&None, &None, &None)
        && of_claim(record) == of_claim(claim)
        && record.provenance == claim.provenance
        && record.fence >= claim.fence
        && record.failed_attempts >= claim.failed_attempts
        && record.lost_attempts >= claim.lost_attempts
        && (!is_first || both.all(|of| of.error_type.is_none() && of.consecutive_losses == 0))
}
