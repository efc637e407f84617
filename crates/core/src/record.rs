//! The idempotency record: what a store keeps for a key, where its last claim came from, and what a worker has left in it.

use std::{borrow::Cow, fmt, sync::Arc};

use serde_json::{Map, Value};

use crate::clock::Timestamp;

/// What a store keeps for a key. A store saves every field unchanged and makes no decisions from
/// them; all decisions are in [`admission`](crate::admission).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct IdempotencyRecord {
    /// The state of the key.
    pub status: Status,
    /// The token of the claim that wrote the record. `None` once the claim is given up, and in a record
    /// written by another library.
    pub owner: Option<Owner>,
    /// The token of the claim that gave the key up: released or undone, or stopped at its deadline. A
    /// writer whose response was lost recognises its own write by it.
    pub last_owner: Option<Owner>,
    /// The number of failed attempts for this key.
    pub failed_attempts: u32,
    /// The number of lost attempts: the owner was killed, timed out, or lost its connection to the
    /// store.
    pub lost_attempts: u32,
    /// The number of attempts that were lost one after the other, the last one included, and of which
    /// nothing was heard at all. One of them may have killed its process. An attempt that failed or was
    /// stopped at its deadline ends the row.
    pub consecutive_losses: u32,
    /// The fence of the last claim: higher than that of every claim before it while the record
    /// lives. 0 in a record of another library.
    pub fence: u64,
    /// While [`Status::InProgress`]: the owner holds the key up to and including this instant.
    /// `None` in a record of another library that did not know its deadline; the key is then held
    /// until `expires_at`. Afterwards: when the owner recorded how its attempt had ended
    /// ([`settled_at`](Self::settled_at)).
    pub lease_until: Option<Timestamp>,
    /// The record is valid up to and including this instant. In our records, a whole second.
    pub expires_at: Timestamp,
    /// The fingerprint: a hash of the payload parts that must agree between deliveries, if the
    /// operation has one.
    pub fingerprint: Option<Fingerprint>,
    /// What the handler returned ([`Status::Completed`]) or the permanent failure
    /// ([`Status::PermanentlyFailed`]), as JSON text.
    pub result: Option<Json>,
    /// What the finished steps of the handler returned, as JSON text. Every write of the record carries it
    /// on until the key is completed.
    pub steps: Option<Json>,
    /// The messages that are stored with the completion and not yet known to be sent, as JSON text.
    pub outbox: Option<Json>,
    /// The payload of the record, as JSON text, until its key is completed: only for an operation that asks for it, to
    /// run the work again, or to divert its record, where nothing redelivers it.
    pub payload: Option<Json>,
    /// The type of the last error. Never its message, which may quote the payload.
    pub error_type: Option<Arc<str>>,
    /// The application that claimed the key. `None` if the application had no name, in records of
    /// earlier versions, and in records of other libraries.
    pub application: Option<Arc<str>>,
    /// Where the last claim came from. `None` in records of earlier versions and of other libraries.
    pub provenance: Option<Provenance>,
}

impl IdempotencyRecord {
    /// A record with only a status and an expiry, which is rounded up to a whole second.
    #[must_use]
    pub const fn new(status: Status, expires_at: Timestamp) -> Self {
        Self {
            status,
            owner: None,
            last_owner: None,
            failed_attempts: 0,
            lost_attempts: 0,
            consecutive_losses: 0,
            fence: 0,
            lease_until: None,
            expires_at: expires_at.ceil_to_second(),
            fingerprint: None,
            result: None,
            steps: None,
            outbox: None,
            payload: None,
            error_type: None,
            application: None,
            provenance: None,
        }
    }

    /// Whether the last claim was given up by its own worker: released, undone, or stopped at its
    /// deadline, when the key stays held until the lease ends. Otherwise its attempt was lost.
    #[must_use]
    pub const fn is_given_up(&self) -> bool {
        matches!(self.status, Status::InProgress)
            && self.owner.is_none()
            && self.last_owner.is_some()
    }

    /// How many bytes its texts have: the parts that may be large.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let texts = [&self.result, &self.steps, &self.outbox, &self.payload];
        texts.into_iter().flatten().map(|text| text.len()).sum()
    }

    /// When the work was recorded as done, or as permanently failed, rounded up to a whole second. `None` before that, in records of earlier versions,
    /// and in those of other libraries, which leave the end of their lease in the field.
    #[must_use]
    pub const fn settled_at(&self) -> Option<Timestamp> {
        match self.status {
            Status::Completed | Status::PermanentlyFailed if self.owner.is_some() => {
                self.lease_until
            }
            _ => None,
        }
    }
}

/// The things that a worker can leave in its record, for a sweep that does it later.
///
/// ```
/// use lambda_idempotency_core::{
///     clock::Timestamp, record::{IdempotencyRecord, Left, Status},
/// };
///
/// let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::from_secs(9));
/// assert!(!Left::Messages.is_in(&record));
/// record.outbox = Some("[]".into());
/// assert!(Left::Messages.is_in(&record) && !Left::Work.is_in(&record));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// Messages that are not known to be sent: a completed record with an
    /// [`outbox`](IdempotencyRecord::outbox). A [`Relay`](crate::outbox::Relay) sends them.
    Messages,
    /// Work that is not known to be done: a record that keeps its
    /// [`payload`](IdempotencyRecord::payload). Most of these have a worker.
    Work,
}

impl Left {
    /// Whether it is in this record.
    #[must_use]
    pub const fn is_in(self, record: &IdempotencyRecord) -> bool {
        match self {
            Self::Messages => matches!(record.status, Status::Completed) && record.outbox.is_some(),
            Self::Work => !matches!(record.status, Status::Completed) && record.payload.is_some(),
        }
    }

    /// The texts that a page leaves out, by the names of the fields of a record: a page of what is left, or of all records.
    #[must_use]
    pub const fn unread(left: Option<Self>) -> &'static [&'static str] {
        match left {
            None => &["result", "payload"],
            Some(Self::Messages) => &["result", "steps", "payload"],
            Some(Self::Work) => &["result", "steps", "outbox"],
        }
    }

    /// The record as such a page has it.
    #[must_use]
    pub fn listed(left: Option<Self>, mut record: IdempotencyRecord) -> IdempotencyRecord {
        let IdempotencyRecord { result, steps, outbox, payload, .. } = &mut record;
        for (name, text) in
            [("result", result), ("steps", steps), ("outbox", outbox), ("payload", payload)]
        {
            if Self::unread(left).contains(&name) {
                *text = None;
            }
        }
        record
    }
}

/// Whether this is a valid application name: 1 to 128 visible ASCII characters.
///
/// ```
/// use lambda_idempotency_core::record::is_application_name;
/// assert!(is_application_name("orders-prod") && !is_application_name("two words"));
/// ```
#[must_use]
pub fn is_application_name(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The status of an [`IdempotencyRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Claimed until the lease ends. A released record also has this status, with a lease in the
    /// past.
    InProgress,
    /// The handler returned; final until the record expires.
    Completed,
    /// The handler failed permanently; final until the record expires.
    PermanentlyFailed,
}

/// The owner token of one claim: 128 random bits, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner(u128);

impl Owner {
    /// A new token from the operating system's random numbers. A generator that was seeded before a
    /// Lambda snapshot would repeat tokens after each restore.
    ///
    /// # Errors
    /// The operating system returned no random bytes.
    pub fn random() -> Result<Self, EntropyError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(EntropyError)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// The token with these bits, for stores that read a token back, and for tests.
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// The bits of the token, for stores that keep it as a number.
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// Reads the text that [`Display`](fmt::Display) writes: 32 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        if hex { u128::from_str_radix(text, 16).ok().map(Self) } else { None }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

/// The operating system returned no random bytes for an owner token or a key.
#[derive(Debug, thiserror::Error)]
#[error("the operating system returned no random bytes; try again")]
pub struct EntropyError(#[source] pub(crate) getrandom::Error);

/// A hash over the parts of a payload that must agree between two deliveries of one key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(Arc<str>);

impl Fingerprint {
    /// Wraps a hash in its text form.
    #[must_use]
    pub fn new(hash: impl Into<Arc<str>>) -> Self {
        Self(hash.into())
    }

    /// The hash as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A JSON text: what a handler returned, or its permanent failure. It may hold personal data, so
/// `Debug` shows only its length; as a `&str` it is available in full. Clones share the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// The text that its clones share.
    #[must_use]
    pub const fn shared(&self) -> &Arc<str> {
        &self.0
    }
}

impl std::ops::Deref for Json {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for Json {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

/// The longest name that a record keeps; a longer one is left out.
const LONGEST: usize = 128;

/// Which worker made the last claim of a key, when, and for which record of an event.
///
/// For people who look at a store: no decision is made from it, and no [`Guard`] names it. It holds no
/// payload, and no identifier that an application has chosen.
///
/// ```
/// use std::sync::Arc;
/// use lambda_idempotency_core::{clock::Timestamp, record::{Provenance, Worker}};
///
/// let worker = Arc::new(Worker::default().with_request_id("8f5d9c3e"));
/// let provenance = Provenance::new(Timestamp::from_secs(1_700_000_000), worker)
///     .with_record("sqs", "2e1424d4-f796-459a-8184-9c92662be6da".into());
/// assert_eq!(provenance.worker.request_id.as_deref(), Some("8f5d9c3e"));
/// ```
///
/// [`Guard`]: crate::store::Guard
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Provenance {
    /// When the key was claimed, by the worker's clock.
    pub claimed_at: Timestamp,
    /// The worker that claimed it. The claims of an invocation share it.
    pub worker: Arc<Worker>,
    /// The kind of source that delivered the record: `sqs`, `kinesis`, ...
    pub source: Option<Cow<'static, str>>,
    /// The record in that source, as logs name it: its id, or a hash of an id that an application has
    /// chosen.
    pub record: Option<Arc<str>>,
}

impl Provenance {
    /// A claim by this worker, of a record that is not known.
    #[must_use]
    pub const fn new(claimed_at: Timestamp, worker: Arc<Worker>) -> Self {
        Self { claimed_at, worker, source: None, record: None }
    }

    /// For this record of this kind of source. A label of more than 128 bytes, or an empty one, is left
    /// out.
    #[must_use]
    pub fn with_record(mut self, source: impl Into<Cow<'static, str>>, label: Arc<str>) -> Self {
        self.source = Some(source.into());
        self.record = Some(label).filter(|label| fits(label));
        self
    }

    /// The texts in it, with the names under which stores keep them; beside them they keep `claimed_at`.
    #[must_use]
    pub fn texts(&self) -> [(&'static str, Option<&str>); 6] {
        let worker = &self.worker;
        [
            (REQUEST_ID, worker.request_id.as_deref()),
            (FUNCTION, worker.function.as_deref()),
            (VERSION, worker.version.as_deref()),
            (LOG_STREAM, worker.log_stream.as_deref()),
            (SOURCE, self.source.as_deref()),
            (RECORD, self.record.as_deref()),
        ]
    }

    /// A provenance of these [texts](Self::texts): `text` has the text of a name. A text that it does not have is left out,
    /// since nothing is decided by it.
    #[must_use]
    pub fn of_texts(claimed_at: Timestamp, text: impl Fn(&str) -> Option<Arc<str>>) -> Self {
        let worker = Worker {
            request_id: text(REQUEST_ID),
            function: text(FUNCTION),
            version: text(VERSION),
            log_stream: text(LOG_STREAM),
        };
        let source = text(SOURCE).map(|source| Cow::Owned(String::from(&*source)));
        Self { claimed_at, worker: Arc::new(worker), source, record: text(RECORD) }
    }

    /// A JSON object with all of it, for stores that keep it as one text.
    ///
    /// ```
    /// use lambda_idempotency_core::{clock::Timestamp, record::Provenance};
    ///
    /// let provenance = Provenance::new(Timestamp::from_millis(7), Default::default());
    /// assert_eq!(provenance.to_json(), r#"{"claimed_at":7}"#);
    /// assert_eq!(Provenance::from_json(&provenance.to_json()), Some(provenance));
    /// ```
    #[must_use]
    pub fn to_json(&self) -> String {
        let texts = self.texts().into_iter();
        let texts = texts.filter_map(|(name, text)| Some((name.to_owned(), text?.into())));
        let claimed_at = (CLAIMED_AT.to_owned(), self.claimed_at.as_millis().into());
        Value::Object(texts.chain([claimed_at]).collect()).to_string()
    }

    /// Reads [`to_json`](Self::to_json). A part that cannot be read is left out; `None` if it does not say when the
    /// key was claimed.
    #[must_use]
    pub fn from_json(text: &str) -> Option<Self> {
        let members: Map<String, Value> = serde_json::from_str(text).ok()?;
        let claimed_at = Timestamp::from_millis(members.get(CLAIMED_AT)?.as_u64()?);
        Some(Self::of_texts(claimed_at, |name| members.get(name)?.as_str().map(Arc::from)))
    }
}

/// The names under which stores keep the parts.
const CLAIMED_AT: &str = "claimed_at";
const REQUEST_ID: &str = "request_id";
const FUNCTION: &str = "function";
const VERSION: &str = "version";
const LOG_STREAM: &str = "log_stream";
const SOURCE: &str = "source";
const RECORD: &str = "record";

/// The worker that made a claim: an invocation of a Lambda function, as far as it is known. A name that is not
/// known, or has more than 128 bytes, is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Worker {
    /// The request id of the invocation.
    pub request_id: Option<Arc<str>>,
    /// The name of the function.
    pub function: Option<Arc<str>>,
    /// The version of the function: a number, or `$LATEST`.
    pub version: Option<Arc<str>>,
    /// The log stream of the execution environment, in the log group of the function.
    pub log_stream: Option<Arc<str>>,
}

impl Worker {
    /// The function of this process, by the environment variables that Lambda sets
    /// (`AWS_LAMBDA_FUNCTION_NAME`, `AWS_LAMBDA_FUNCTION_VERSION`, `AWS_LAMBDA_LOG_STREAM_NAME`).
    /// Outside Lambda nothing is known.
    #[must_use]
    pub fn from_environment() -> Self {
        let read = |variable| text(std::env::var(variable).ok()?);
        Self {
            request_id: None,
            function: read("AWS_LAMBDA_FUNCTION_NAME"),
            version: read("AWS_LAMBDA_FUNCTION_VERSION"),
            log_stream: read("AWS_LAMBDA_LOG_STREAM_NAME"),
        }
    }

    /// In the invocation of this request id.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.request_id = text(id);
        self
    }
}

fn text(text: impl Into<Arc<str>>) -> Option<Arc<str>> {
    Some(text.into()).filter(|text| fits(text))
}

fn fits(text: &str) -> bool {
    (1..=LONGEST).contains(&text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_tokens_differ_and_are_parsed_from_their_text() {
        let (a, b) = (Owner::random().unwrap(), Owner::random().unwrap());
        assert_ne!(a, b);
        assert_eq!(Owner::parse(&a.to_string()), Some(a));
        assert_eq!(Owner::from_bits(1).to_string().len(), 32);
        assert_eq!(Owner::from_bits(a.to_bits()), a);
    }

    #[test]
    fn debug_shows_no_content_of_a_record() {
        let mut record = IdempotencyRecord::new(Status::Completed, Timestamp::EPOCH);
        record.result = Some("\"s3cr3t\"".into());
        assert!(!format!("{record:?}").contains("s3cr3t"));
        assert_eq!(record.result.as_deref(), Some("\"s3cr3t\""));
    }

    #[test]
    fn text_that_is_not_a_token_is_refused() {
        for text in
            ["", "1", "+0000000000000000000000000000001", "g0000000000000000000000000000000"]
        {
            assert_eq!(Owner::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_label_that_is_empty_or_too_long_is_left_out() {
        let by = |label: &str| {
            Provenance::new(Timestamp::EPOCH, Arc::default()).with_record("sqs", label.into())
        };
        for label in [String::new(), "x".repeat(129)] {
            assert_eq!(by(&label).record, None);
            assert_eq!(Worker::default().with_request_id(label), Worker::default());
        }
        assert_eq!(by(&"x".repeat(128)).record.map(|label| label.len()), Some(128));
        assert_eq!(by("").source.as_deref(), Some("sqs"));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        for text in ["", "null", "[]", "{}", r#"{"claimed_at":"1"}"#, r#"{"claimed_at":-1}"#] {
            assert_eq!(Provenance::from_json(text), None, "{text}");
        }
        let text = r#"{"claimed_at":7,"source":"sqs","function":1,"new":{}}"#;
        let provenance = Provenance::from_json(text).unwrap();
        assert_eq!(provenance.claimed_at, Timestamp::from_millis(7));
        assert_eq!(
            (provenance.source.as_deref(), &provenance.worker.function),
            (Some("sqs"), &None)
        );
    }
}
