//! Where results are kept that are too large for a record.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_idempotency_core::clock::{BoxFuture, Timestamp};

use crate::{result_name::ResultName, unreadable::BoxError};

/// Keeps results that are too large for a record: a bucket, for example.
///
/// A result is put before the record that refers to it is written. If that write fails, the result stays behind, and
/// nothing refers to it. So let the place remove what is old by itself, but not before `expires_at`: an S3 bucket by a
/// lifecycle rule that is longer than the retention.
///
/// A call that is not answered at its deadline is dropped. At most 32 calls are made at once.
///
/// ```
/// use std::{collections::HashMap, sync::Mutex};
///
/// use lambda_idempotency_results::{BoxError, BoxFuture, ResultName, ResultStore, Timestamp};
///
/// #[derive(Default)]
/// struct InMemory(Mutex<HashMap<ResultName, Vec<u8>>>);
///
/// impl ResultStore for InMemory {
///     fn put<'a>(
///         &'a self,
///         name: &'a ResultName,
///         content: Vec<u8>,
///         _expires_at: Timestamp,
///         _call_deadline: Timestamp,
///     ) -> BoxFuture<'a, Result<(), BoxError>> {
///         Box::pin(async move {
///             self.0.lock().map_err(|_| "poisoned")?.insert(name.clone(), content);
///             Ok(())
///         })
///     }
///
///     fn get<'a>(
///         &'a self,
///         name: &'a ResultName,
///         _call_deadline: Timestamp,
///     ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
///         Box::pin(async move { Ok(self.0.lock().map_err(|_| "poisoned")?.get(name).cloned()) })
///     }
/// }
/// ```
pub trait ResultStore: Send + Sync + 'static {
    /// Keeps `content` under `name` until `expires_at` at least. After an `Ok`, every `get` has it. A content that is there
    /// already is the same content, with an earlier expiry.
    fn put<'a>(
        &'a self,
        name: &'a ResultName,
        content: Vec<u8>,
        expires_at: Timestamp,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>>;

    /// The content that was put under `name`; `None` if nothing is there. Say `None` only if that is certain: the result then
    /// counts as not kept. Whatever may be otherwise later is an error.
    fn get<'a>(
        &'a self,
        name: &'a ResultName,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>>;
}

impl<R: ResultStore + ?Sized> ResultStore for Arc<R> {
    fn put<'a>(
        &'a self,
        name: &'a ResultName,
        content: Vec<u8>,
        expires_at: Timestamp,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        (**self).put(name, content, expires_at, call_deadline)
    }

    fn get<'a>(
        &'a self,
        name: &'a ResultName,
        call_deadline: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        (**self).get(name, call_deadline)
    }
}

/// Keeps results in this process, for tests. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct MemoryResults(Arc<Mutex<HashMap<ResultName, Vec<u8>>>>);

impl MemoryResults {
    /// The number of results, those included to which no record refers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Removes all results, as a lifecycle rule does that is too short.
    pub fn clear(&self) {
        self.lock().clear();
    }

    // A panic cannot leave the map half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, HashMap<ResultName, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResultStore for MemoryResults {
    fn put<'a>(
        &'a self,
        name: &'a ResultName,
        content: Vec<u8>,
        _: Timestamp,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            self.lock().insert(name.clone(), content);
            Ok(())
        })
    }

    fn get<'a>(
        &'a self,
        name: &'a ResultName,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        Box::pin(async move { Ok(self.lock().get(name).cloned()) })
    }
}
