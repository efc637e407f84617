//! What a store may expect of each call: that it is not empty, and names each key once. DynamoDB refuses other calls.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    record::IdempotencyRecord,
    store::{Capabilities, Store, StoreError, Verdict, Write},
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
