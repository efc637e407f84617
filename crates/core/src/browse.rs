//! Reading a store from end to end, for people who operate it. Nothing in a function needs this.

use std::{fmt, num::NonZeroUsize, sync::Arc};

use crate::{
    clock::{BoxFuture, Timestamp},
    key::Key,
    record::IdempotencyRecord,
    store::StoreError,
};

/// A store whose idempotency records can be listed. It only reads: changes are writes of a
/// [`Store`](crate::store::Store), under a guard that names what was listed.
///
/// Both methods read every item of the store sooner or later, and cost that: [`DynamoDbStore`] reads with
/// `Scan`, at one read unit for each 4 KB. Functions have no permission for it, and need none.
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
    /// shorter, also empty, and still have a next one.
    ///
    /// From the first page to the one without a [`next`](Page::next), each record that stays in the store
    /// meanwhile is on exactly one page, as it was when that page was read. Records that come, go or change
    /// meanwhile may be on it in either state, or missing.
    ///
    /// An item that is not an idempotency record is an error in its place, as in [`Store::read`], and does
    /// not fail the page.
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
