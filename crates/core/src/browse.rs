//! Reading a store from end to end, for people who operate it. Nothing in a function needs this.

use std::{fmt, num::NonZeroUsize, sync::Arc};

pub use crate::record::Left;

use crate::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    retry::RequestFailure,
    store::{RecordVersion, StoreError, StoreErrorKind},
};

/// A store whose idempotency records can be listed. It changes nothing but [the messages](Self::mark_sent) in a record: other
/// changes are writes of a [`Store`](crate::store::Store), under a guard that names what was listed.
///
/// [`page`](Self::page) and [`count`](Self::count) read every item of the store sooner or later, and cost that:
/// [`DynamoDbStore`] reads with `Scan`, at one read unit for each 4 KB. [`left`](Self::left) reads less where the store
/// has an index. Functions have no permission for it, and need none.
///
/// The conformance suite of the `testkit` crate has scenarios for it (`browse_conformance!`).
///
/// ```
/// use lambda_idempotency_core::{
///     browse::Browse as _, clock::Timestamp, key::Key, memory::MemoryStore,
///     record::{IdempotencyRecord, Status},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, soon) = (MemoryStore::new(), Timestamp::from_secs(4_000_000_000));
/// for id in 0..3 {
///     let record = IdempotencyRecord::new(Status::Completed, soon);
///     store.insert(Key::from_text(format!("charge#{id}")), record);
/// }
/// let two = 2.try_into()?;
/// let first = store.page(None, two, soon).await?;
/// let last = store.page(first.next.as_ref(), two, soon).await?;
/// assert_eq!((first.items.len(), last.items.len(), last.next), (2, 1, None));
/// assert_eq!(store.count(soon).await?, 3);
/// # Ok(())
/// # }
/// ```
///
/// [`DynamoDbStore`]: https://docs.rs/lambda-idempotency-dynamodb
pub trait Browse: Send + Sync + 'static {
    /// The next items after `after`, or the first ones: at most `limit`, in any order. A page can be
    /// shorter, also empty, and still have a next one: it is to end at some megabytes ([`PageBuilder`]).
    ///
    /// From the first page to the one without a [`next`](Page::next), each record that stays in the store
    /// meanwhile is on exactly one page, as it was when that page was read. Records that come, go or change
    /// meanwhile may be on it in either state, or missing.
    ///
    /// An item that is not an idempotency record is an error in its place, as in [`Store::read`], and does
    /// not fail the page. A record has neither its result nor its payload, which are not read: [`Store::read`] has them.
    ///
    /// [`Store::read`]: crate::store::Store::read
    ///
    /// # Errors
    /// The store did not answer until `call_deadline`, or refused.
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// As [`page`](Self::page), for a sweep over what is left: items without it may be missing. A store without an
    /// index of what is left returns the page of all items. Cursors are those of this method for the same `left`.
    ///
    /// Each record is as it was when its page was read, with one text: its messages, or its payload. The others [are not
    /// read](Left::unread): write nothing back of it, but [mark](Self::mark_sent) its messages as sent. An item that could not
    /// be read now fails the page; one that is not an idempotency record is an error in its place. An index may learn of a
    /// write later than the store does, so a record that was written a moment ago may be missing; the next sweep finds it.
    ///
    /// # Errors
    /// As [`page`](Self::page); and the store cannot use its index.
    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// Removes the messages from each of these completed records that is still as it was read: they are sent. Everything else
    /// of it stays as it is stored. A record that was changed or deleted since is left alone. One answer each, in order; an error
    /// means that it may be left as well. It can be repeated.
    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>>;

    /// The number of items, expired and unreadable ones included. Costs as much as reading all pages.
    ///
    /// # Errors
    /// The store did not answer until `call_deadline`, or refused.
    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>>;
}

impl<S: Browse + ?Sized> Browse for Arc<S> {
    fn page<'a>(
        &'a self,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        (**self).page(after, limit, call_deadline)
    }

    fn left<'a>(
        &'a self,
        left: Left,
        after: Option<&'a Cursor>,
        limit: NonZeroUsize,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Page, StoreError>> {
        (**self).left(left, after, limit, call_deadline)
    }

    fn mark_sent<'a>(
        &'a self,
        records: &'a [(Key, RecordVersion)],
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<(), StoreError>>> {
        (**self).mark_sent(records, call_deadline)
    }

    fn count<'a>(&'a self, call_deadline: Timestamp) -> BoxFuture<'a, Result<u64, StoreError>> {
        (**self).count(call_deadline)
    }
}

/// Some items of a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Page {
    /// The keys, each with its record, or why its item cannot be read.
    pub items: Vec<(Key, Result<IdempotencyRecord, StoreError>)>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<Cursor>,
}

impl Page {
    /// A page.
    #[must_use]
    pub const fn new(
        items: Vec<(Key, Result<IdempotencyRecord, StoreError>)>,
        next: Option<Cursor>,
    ) -> Self {
        Self { items, next }
    }
}

/// A page to which a store adds records while there is [room](Self::has_room): at most so many, and a few megabytes.
///
/// ```
/// use lambda_idempotency_core::{
///     browse::PageBuilder, clock::Timestamp, key::Key,
///     record::{IdempotencyRecord, Status}, retry::RequestFailure,
/// };
///
/// let mut page = PageBuilder::new(2.try_into()?);
/// for id in ["a", "b", "c"] {
///     if page.has_room() {
///         let record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
///         page.add::<()>(Key::from_text(id), Ok(Some(record))).unwrap();
///     }
/// }
/// let page = page.until_last_key(true);
/// assert_eq!((page.items.len(), page.next.unwrap().as_str()), (2, "b"));
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug)]
pub struct PageBuilder {
    limit: NonZeroUsize,
    items: Vec<(Key, Result<IdempotencyRecord, StoreError>)>,
    bytes: usize,
}

impl PageBuilder {
    /// The bytes of texts with which a page has no room for another record. The last one may go beyond it.
    pub const MAX_BYTES: usize = 4 * 1024 * 1024;

    /// An empty page, of at most `limit` records.
    #[must_use]
    pub const fn new(limit: NonZeroUsize) -> Self {
        Self { limit, items: Vec::new(), bytes: 0 }
    }

    /// Whether there is room for another record.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.items.len() < self.limit.get() && self.bytes < Self::MAX_BYTES
    }

    /// Adds the record that was read for a key. A deleted one is left out, and an item that is not an
    /// idempotency record is an error in its place.
    ///
    /// # Errors
    /// The record could not be read now, so the page fails.
    pub fn add<D>(
        &mut self,
        key: Key,
        read: Result<Option<IdempotencyRecord>, RequestFailure<D>>,
    ) -> Result<(), RequestFailure<D>> {
        let item = match read {
            Ok(None) => return Ok(()),
            Ok(Some(record)) => {
                self.bytes = self.bytes.saturating_add(record.text_bytes());
                Ok(record)
            }
            Err(failure) if failure.kind() == StoreErrorKind::Corrupt => Err(failure.report(false)),
            Err(failure) => return Err(failure),
        };
        self.items.push((key, item));
        Ok(())
    }

    /// The page, and where the next one begins.
    #[must_use]
    pub fn until(self, next: Option<Cursor>) -> Page {
        Page::new(self.items, next)
    }

    /// The page of a store whose cursors are keys. The next one begins behind its last key, if there are more records.
    #[must_use]
    pub fn until_last_key(self, has_next: bool) -> Page {
        let last = self.items.last().filter(|_| has_next);
        let next = last.map(|(key, _)| Cursor::from_text(key.as_str()));
        self.until(next)
    }
}

/// How far a sweep over what is left came: a run of a [`Relay`](crate::outbox::Relay), for example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Swept {
    /// How many idempotency records it has looked at: all of the store, or those in its index.
    pub examined: u64,
    /// How many of them could not be read.
    pub unreadable: u64,
    /// Whether it came to the end of the store before its deadline.
    pub is_complete: bool,
    /// Where the next sweep begins: at the beginning of the store if this is `None`.
    pub next: Option<Cursor>,
}

/// A position between two pages. Its text ([`as_str`](Self::as_str)) can be kept and used later with the same
/// store. It may be a key, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cursor(Arc<str>);

impl Cursor {
    /// The cursor of this text.
    #[must_use]
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cursor").finish_non_exhaustive()
    }
}
