//! Lists the records of the store inside, without faults: listing is for people, and no protocol depends on it.

use std::num::NonZeroUsize;

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Left, Page},
    clock::{BoxFuture, Timestamp},
    key::Key,
    store::{RecordVersion, Store, StoreError},
};

use super::FaultyStore;

impl<S: Store + Browse> Browse for FaultyStore<S> {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.inner().page(after, limit, call_deadline)
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.inner().left(left, after, limit, call_deadline)
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        self.inner().mark_sent(records, call_deadline)
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.inner().count(call_deadline)
    }
}
