//! A store around another, which changes the form of results on their way.

use std::num::NonZeroUsize;

use lambda_idempotency_core::{
    browse::{Browse, Cursor, Page},
    capabilities::Capabilities,
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::{Store, StoreError, Verdict, Write},
};

use crate::codec::Codec;

/// The most bytes of a result, unless [`Results::max_bytes`] says otherwise: more than a response of Lambda can
/// have.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// A store around another, which stores results in another form: see the [crate](crate).
///
/// Without a setting, results are stored as they are, and all forms that need no setting are read.
#[derive(Clone, Debug)]
pub struct Results<S> {
    store: S,
    codec: Codec,
}

impl<S> Results<S> {
    /// Stores records in `store`.
    #[must_use]
    pub const fn new(store: S) -> Self {
        let codec = Codec { compress_above: None, max_bytes: MAX_BYTES, status_only: false };
        Self { store, codec }
    }

    /// Compresses results of more than `bytes` bytes with zlib, if that makes them smaller. Default: no result
    /// is compressed. 1024 is a good value: a DynamoDB item is billed by the kilobyte.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::Results;
    ///
    /// let store = Results::new(MemoryStore::new()).compress_above(1024);
    /// ```
    #[must_use]
    pub const fn compress_above(mut self, bytes: usize) -> Self {
        self.codec.compress_above = Some(bytes);
        self
    }

    /// Stores no results, only that the work was done. Results that are stored already are read.
    ///
    /// A later call of `run` then gets the error that the result was not kept, and a later HTTP request the status
    /// 409. Records of queues and streams need no result.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::Results;
    ///
    /// let store = Results::new(MemoryStore::new()).status_only();
    /// ```
    #[must_use]
    pub const fn status_only(mut self) -> Self {
        self.codec.status_only = true;
        self
    }

    /// The most bytes of a result before it is compressed. A larger one is not stored: its record is, without a
    /// result. A stored one that decompresses to more is not read. Default: 8 MiB.
    ///
    /// ```
    /// use lambda_idempotency_core::memory::MemoryStore;
    /// use lambda_idempotency_results::Results;
    ///
    /// let store = Results::new(MemoryStore::new()).compress_above(1024).max_bytes(256 * 1024);
    /// ```
    #[must_use]
    pub const fn max_bytes(mut self, bytes: usize) -> Self {
        self.codec.max_bytes = bytes;
        self
    }

    /// The store around which this one is.
    #[must_use]
    pub const fn store(&self) -> &S {
        &self.store
    }

    fn decoded(&self, mut record: IdempotencyRecord) -> Result<IdempotencyRecord, StoreError> {
        let Some(stored) = &record.result else { return Ok(record) };
        if let Some(result) = self.codec.decode(stored)? {
            record.result = Some(result);
        }
        Ok(record)
    }

    fn decoded_verdict(&self, verdict: Verdict) -> Verdict {
        match verdict {
            Verdict::Found(Some(record)) => match self.decoded(record) {
                Ok(record) => Verdict::Found(Some(record)),
                Err(error) => Verdict::Unknown(error),
            },
            other => other,
        }
    }
}

fn has_result(write: &Write) -> bool {
    write.record.as_ref().is_some_and(|record| record.result.is_some())
}

impl<S: Store> Results<S> {
    /// Writes whose results have their stored form. Those that have none because their result is too large are not
    /// sent.
    async fn write_encoded(&self, writes: &[Write], call_deadline: Timestamp) -> Vec<Verdict> {
        let mut sent = Vec::with_capacity(writes.len());
        let mut refused = Vec::with_capacity(writes.len());
        for write in writes {
            let mut write = write.clone();
            let result = write.record.as_ref().and_then(|record| record.result.as_ref());
            match result.map_or(Ok(None), |result| self.codec.encode(result)) {
                Ok(result) => {
                    if let Some(record) = &mut write.record {
                        record.result = result;
                    }
                    sent.push(write);
                    refused.push(None);
                }
                Err(error) => refused.push(Some(error)),
            }
        }
        let mut verdicts = self.store.write(&sent, call_deadline).await.into_iter();
        let verdict = |refused| match refused {
            Some(error) => Some(Verdict::Unknown(error)),
            None => verdicts.next(),
        };
        refused.into_iter().map_while(verdict).collect()
    }
}

impl<S: Store> Store for Results<S> {
    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn write<'a>(
        &'a self,
        writes: &'a [Write],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let mut verdicts = if writes.iter().any(has_result) {
                self.write_encoded(writes, call_deadline).await
            } else {
                self.store.write(writes, call_deadline).await
            };
            for verdict in &mut verdicts {
                let answered = std::mem::replace(verdict, Verdict::Written);
                *verdict = self.decoded_verdict(answered);
            }
            verdicts
        })
    }

    fn read<'a>(
        &'a self,
        keys: &'a [Key],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        Box::pin(async move {
            let found = self.store.read(keys, call_deadline).await.into_iter();
            found.map(|found| found?.map(|record| self.decoded(record)).transpose()).collect()
        })
    }
}

impl<S: Browse> Browse for Results<S> {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let mut page = self.store.page(after, limit, call_deadline).await?;
            for (_, item) in &mut page.items {
                if let Ok(record) = item {
                    *item = self.decoded(record.clone());
                }
            }
            Ok(page)
        })
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.store.count(call_deadline)
    }
}
