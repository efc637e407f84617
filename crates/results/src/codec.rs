//! From a result to what is stored of it, and back.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::{Clock, Timestamp},
    key::Key,
    record::{IdempotencyRecord, Json, Status},
    store::{StoreError, StoreErrorKind},
};
use tokio::sync::Semaphore;

use crate::{
    compression::{Turns, compress, decompress},
    encryption::EncryptionKey,
    envelope::{self, Steps, Stored},
    forms::Forms,
    key_provider::KeyProvider,
    part::{Part, Place},
    result_name::ResultName,
    result_store::ResultStore,
    unreadable::{Helper, Unreadable, within},
};

/// How many calls of a result store are made at once: a Lambda process may have 1024 open files.
const AT_ONCE: usize = 32;
/// By how much an object may be longer than the content that is encrypted in it: the header with the longest id of a
/// key, the nonce and the tag.
const OVERHEAD: usize = 1024;

/// By how much a record may be older than its expiry and still be of use: more than clocks differ.
const CLOCKS: Duration = Duration::from_secs(60 * 60);
/// The most bytes of a result, unless [`Results::max_bytes`](crate::Results::max_bytes) says otherwise: more than a
/// response of Lambda can have.
pub(crate) const MAX_BYTES: usize = 8 * 1024 * 1024;

/// How results are stored.
#[derive(Clone)]
pub(crate) struct Codec {
    /// Longer results are compressed.
    pub(crate) compress_above: Option<usize>,
    /// Longer results are neither stored nor read.
    pub(crate) max_bytes: usize,
    /// Results are not stored at all.
    pub(crate) status_only: bool,
    /// Whether results are encrypted, and not only decrypted.
    pub(crate) encrypts: bool,
    pub(crate) keys: Option<Arc<dyn KeyProvider>>,
    pub(crate) elsewhere: Option<Elsewhere>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) forms: Forms,
}

/// Where large results are kept.
#[derive(Clone)]
pub(crate) struct Elsewhere {
    /// A result that is longer as a part of the record is kept elsewhere.
    above: usize,
    results: Arc<dyn ResultStore>,
    calls: Arc<Semaphore>,
}

impl Elsewhere {
    pub(crate) fn new(above: usize, results: impl ResultStore) -> Self {
        Self { above, results: Arc::new(results), calls: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Codec {
    /// Half of the time until this deadline: how long results may take that can be left out. A completion can then still
    /// be written in time, or its answer be given.
    pub(crate) fn half_until(&self, call_deadline: Timestamp) -> Timestamp {
        let now = self.clock.now();
        now.plus(call_deadline.since(now) / 2)
    }

    /// Whether the result of this record may be an answer: not while it is in progress, and not after its expiry.
    pub(crate) fn is_answer(&self, record: &IdempotencyRecord) -> bool {
        record.status != Status::InProgress && self.clock.now() < record.expires_at
    }

    /// Whether what a record carries besides its result may be of use: until its expiry, and a while longer, because
    /// workers compare that with their own clocks.
    pub(crate) fn is_needed(&self, record: &IdempotencyRecord) -> bool {
        self.clock.now() <= record.expires_at.plus(CLOCKS)
    }

    /// The stored form of a part of a record.
    pub(crate) async fn encode(
        &self,
        place: Place<'_>,
        record: &IdempotencyRecord,
        turns: &Turns,
        deadline: Timestamp,
    ) -> Result<Option<Json>, StoreError> {
        let (part, key, _) = place;
        let Some(text) = part.of(record) else { return Ok(None) };
        match part {
            Part::Result if self.status_only => Ok(None),
            Part::Result => self.encode_result(key, record, text, turns, deadline).await,
            _ if self.encrypts || envelope::looks_stored(text) => {
                self.encode_part(place, text, turns, deadline).await.map(Some)
            }
            _ => Ok(Some(text.clone())),
        }
    }

    async fn encode_result(
        &self,
        key: &Key,
        record: &IdempotencyRecord,
        result: &Json,
        turns: &Turns,
        deadline: Timestamp,
    ) -> Result<Option<Json>, StoreError> {
        if result.len() > self.max_bytes {
            let context = format!(
                "a result of {} bytes, and at most {} are stored: return less from the handler, or set a \
                 higher `max_bytes`",
                result.len(),
                self.max_bytes
            );
            return Err(StoreError::new(StoreErrorKind::TooLarge, context));
        }
        let place = (Part::Result, key, record.owner);
        let (steps, content) = self.content(place, result, turns, deadline).await?;
        let is_as_it_is = steps.is_plain() && !envelope::looks_stored(result);
        let content = content.as_deref().unwrap_or(result.as_bytes());
        let length =
            if is_as_it_is { content.len() } else { envelope::length_here(&steps, content.len()) };
        if let Some(elsewhere) = self.elsewhere.as_ref().filter(|place| length > place.above) {
            let object = envelope::object(&steps, content);
            let name = self.put(elsewhere, key, record, object, deadline).await?;
            return Ok(Some(envelope::elsewhere(&name).into()));
        }
        if is_as_it_is {
            return Ok(Some(result.clone()));
        }
        Ok(Some(envelope::here(&steps, content).into()))
    }

    /// The stored form of another part. It is not compressed unless it is encrypted, and always kept in the record.
    async fn encode_part(
        &self,
        place: Place<'_>,
        text: &Json,
        turns: &Turns,
        deadline: Timestamp,
    ) -> Result<Json, StoreError> {
        let (steps, content) = match self.encrypts {
            true => self.content(place, text, turns, deadline).await?,
            false => (Steps::default(), None),
        };
        Ok(envelope::here(&steps, content.as_deref().unwrap_or(text.as_bytes())).into())
    }

    /// The content that is stored in place of a text, if it is another one.
    async fn content(
        &self,
        place: Place<'_>,
        text: &Json,
        turns: &Turns,
        deadline: Timestamp,
    ) -> Result<(Steps, Option<Vec<u8>>), StoreError> {
        let (part, key, owner) = place;
        let mut steps = Steps::default();
        let mut content = None;
        if let Some(compressed) = self.compressed(text, turns).await {
            (steps.zlib, content) = (true, Some(compressed));
        }
        if let Some(keys) = self.keys.as_deref().filter(|_| self.encrypts) {
            let encryption = current(part, keys, &*self.clock, deadline).await?;
            steps.key_id = Some(encryption.shared_id());
            let plain = content.unwrap_or_else(|| text.as_bytes().to_vec());
            let sealed = encryption.seal(&steps.about(part, key, owner), plain);
            content = Some(sealed.ok_or_else(|| Helper::Randomness.not_stored(part, None))?);
        }
        Ok((steps, content))
    }

    /// The compressed result, if that is wanted and saves something.
    async fn compressed(&self, result: &Json, turns: &Turns) -> Option<Vec<u8>> {
        let above = self.compress_above?;
        if result.len() <= above {
            return None;
        }
        turns.wait(result.len()).await;
        let compressed = compress(result.as_bytes())?;
        let steps = Steps { zlib: true, key_id: None };
        (envelope::length_here(&steps, compressed.len()) < result.len()).then_some(compressed)
    }

    /// Keeps an object elsewhere, under a name that no other content has.
    async fn put(
        &self,
        elsewhere: &Elsewhere,
        key: &Key,
        record: &IdempotencyRecord,
        object: Vec<u8>,
        deadline: Timestamp,
    ) -> Result<ResultName, StoreError> {
        let name = ResultName::new(key, &object);
        let put = async {
            let _permit = elsewhere.calls.acquire().await;
            elsewhere.results.put(&name, object, record.expires_at, deadline).await
        };
        match within(&*self.clock, deadline, put).await {
            Some(Ok(())) => Ok(name),
            Some(Err(why)) => Err(Helper::Results.not_stored(Part::Result, Some(why))),
            None => Err(Helper::Results.not_stored(Part::Result, None)),
        }
    }

    /// The text from what is stored of it in a record; `None` if it is not there any more.
    pub(crate) async fn decode(
        &self,
        place: Place<'_>,
        stored: &str,
        deadline: Timestamp,
    ) -> Result<Option<Json>, StoreError> {
        let (part, key, owner) = place;
        let unreadable = |unreadable: Unreadable| unreadable.error(part);
        let (steps, content) = match envelope::read(stored).map_err(unreadable)? {
            None => return Ok(Some(stored.into())),
            Some(Stored::Here(steps, content)) => (steps, content),
            Some(Stored::Elsewhere(_)) if part != Part::Result => {
                return Err(unreadable(Unreadable::Damaged));
            }
            Some(Stored::Elsewhere(name)) => match self.get(key, &name, deadline).await? {
                Some(object) => envelope::read_object(object).map_err(unreadable)?,
                None => return Ok(None),
            },
        };
        let mut content = content;
        if let Some(id) = &steps.key_id {
            let keys = self.keys.as_deref().ok_or_else(|| unreadable(Unreadable::NoKeys))?;
            let key_of_id =
                match within(&*self.clock, deadline, async { keys.find(id, deadline).await }).await
                {
                    Some(Ok(found)) => found.ok_or_else(|| unreadable(Unreadable::UnknownKey))?,
                    Some(Err(why)) => return Err(Helper::Keys.not_read(part, Some(why))),
                    None => return Err(Helper::Keys.not_read(part, None)),
                };
            let opened = key_of_id.open(&steps.about(part, key, owner), &mut content);
            content = opened.map_err(unreadable)?;
        }
        if steps.zlib {
            // The setting is for results. Other parts have their own bounds.
            let most = if part == Part::Result { self.max_bytes } else { MAX_BYTES };
            content = decompress(&content, most).map_err(unreadable)?;
        }
        let text = String::from_utf8(content).map_err(|_| unreadable(Unreadable::Damaged))?;
        Ok(Some(text.into()))
    }

    async fn get(
        &self,
        key: &Key,
        name: &ResultName,
        deadline: Timestamp,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let unreadable = |unreadable: Unreadable| unreadable.error(Part::Result);
        let elsewhere =
            self.elsewhere.as_ref().ok_or_else(|| unreadable(Unreadable::NoResultStore))?;
        let get = async {
            let _permit = elsewhere.calls.acquire().await;
            elsewhere.results.get(name, deadline).await
        };
        match within(&*self.clock, deadline, get).await {
            Some(Ok(Some(object))) if object.len() > self.max_bytes.saturating_add(OVERHEAD) => {
                Err(unreadable(Unreadable::TooLarge { max_bytes: self.max_bytes }))
            }
            Some(Ok(Some(object))) if ResultName::new(key, &object) != *name => {
                Err(unreadable(Unreadable::Damaged))
            }
            Some(Ok(object)) => Ok(object),
            Some(Err(why)) => Err(Helper::Results.not_read(Part::Result, Some(why))),
            None => Err(Helper::Results.not_read(Part::Result, None)),
        }
    }
}

async fn current(
    part: Part,
    keys: &dyn KeyProvider,
    clock: &dyn Clock,
    deadline: Timestamp,
) -> Result<EncryptionKey, StoreError> {
    match within(clock, deadline, async { keys.current(deadline).await }).await {
        Some(Ok(key)) => Ok(key),
        Some(Err(why)) => Err(Helper::Keys.not_stored(part, Some(why))),
        None => Err(Helper::Keys.not_stored(part, None)),
    }
}

/// Without what users gave.
impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec")
            .field("compress_above", &self.compress_above)
            .field("max_bytes", &self.max_bytes)
            .field("status_only", &self.status_only)
            .field("encrypts", &self.encrypts)
            .field("offload_above", &self.elsewhere.as_ref().map(|elsewhere| elsewhere.above))
            .finish_non_exhaustive()
    }
}
