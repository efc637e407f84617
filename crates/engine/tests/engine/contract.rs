//! What a store may expect of each call: that it is not empty, and names each key once. DynamoDB refuses other calls.
//! And what a claim was written over, for those who judge when a handler begins.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
};

use lambda_idempotency_core::{
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Store, StoreError, Verdict, Write},
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

/// The receives of the attempts before each claim. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Receives(Arc<Mutex<KnownReceives>>);

#[derive(Default)]
struct KnownReceives {
    /// What each record says that was ever to be written.
    written: HashMap<(String, RecordVersion), u32>,
    /// What the record said over which a claim was to be written.
    before: HashMap<(String, Owner), u32>,
}

impl Receives {
    fn learn(&self, write: &Write) {
        let mut known = self.0.lock().unwrap();
        let key = || write.key.as_str().to_owned();
        let Some(record) = &write.record else { return };
        known.written.insert((key(), RecordVersion::of(record)), record.last_receive);
        let Some(owner) = record.owner.filter(|_| record.status == Status::InProgress) else {
            return;
        };
        let before = match &write.guard {
            Guard::Unchanged(seen) if seen.owner != Some(owner) => {
                known.written.get(&(key(), seen.clone())).copied().unwrap_or(0)
            }
            Guard::Absent => 0,
            Guard::Unchanged(_) | Guard::OwnedBy(_) => return,
        };
        known.before.insert((key(), owner), before);
    }

    /// The receive of the attempt before this claim; 0 if it is not known.
    pub(crate) fn before(&self, key: &Key, claim: Owner) -> u32 {
        let known = self.0.lock().unwrap();
        known.before.get(&(key.as_str().to_owned(), claim)).copied().unwrap_or(0)
    }
}

/// A store that checks what it is asked.
pub(crate) struct Contract<S> {
    pub(crate) inner: S,
    pub(crate) wrong: Wrong,
    pub(crate) receives: Receives,
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
        writes.iter().for_each(|write| self.receives.learn(write));
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
