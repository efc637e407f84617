//! Which record of which source, and how it was delivered: what a handler can ask its [`Call`](crate::call::Call) about, beside the
//! payload.
//!
//! A source fills in a [`Delivered`] for each record. It holds references and numbers, no copies: the
//! record's text is a part of the event's, which the calls of one [`Invocation`] share, and is parsed
//! when a handler asks for something in it.

use std::{
    any::{Any, type_name},
    fmt,
    ops::Range,
    sync::Arc,
};

use lambda_idempotency_core::record::Json;
use lambda_idempotency_keys::{Digest, Secret};
use serde::Deserialize;

use crate::trace_context::TraceContext;

/// The invocation that calls belong to.
///
/// Implemented by the crate that knows where functions run, which finds its own type again by
/// [`Call::invocation`](crate::call::Call::invocation).
pub trait Invocation: Any + Send + Sync {
    /// Its id: the same in each attempt of an asynchronous invocation, another for each batch of a queue
    /// or stream.
    fn request_id(&self) -> &str;

    /// The event as text, of which its records are parts.
    fn event(&self) -> &str;

    /// The trace header with which it was called, as text.
    fn trace_header(&self) -> Option<&str>;

    /// Describes one of its records; `None` if the source is not one of messages.
    fn messaging<'r>(&self, record: &'r RecordId) -> Option<Messaging<'r>>;
}

/// How a record was delivered. A batch keeps one for each record, so it is small.
#[derive(Clone, Default)]
pub struct Delivered {
    invocation: Option<Arc<dyn Invocation>>,
    record: RecordText,
    reads: Reads,
    /// How often, this time included; 0 if that is not known.
    receives: u32,
    /// Whether the record caused the invocation, and so has its trace.
    is_cause: bool,
    /// As a test has set it, instead of what is read.
    set: Option<Box<Set>>,
    /// The text that the claim of its key keeps, until the engine has taken it.
    kept: Option<Json>,
}

/// The text of the record.
#[derive(Clone, Default)]
enum RecordText {
    #[default]
    None,
    /// This part of the event.
    Part(EventRange),
    /// A copy.
    Own(Arc<str>),
}

/// A part of an event, which is never as large as 4 GB.
#[derive(Clone, Copy)]
struct EventRange {
    start: u32,
    end: u32,
}

/// Values that tests have set.
#[derive(Clone, Default)]
struct Set {
    attributes: Vec<(String, String)>,
    trace: Option<TraceContext>,
}

/// How a source's records are read, beside their payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reads(Option<&'static ReadFunctions>);

/// The functions by which a source's records are read.
#[derive(Debug)]
pub struct ReadFunctions {
    /// Finds the attribute of a name in a record's text.
    pub attribute: Option<ReadAttribute>,
    /// Finds the trace header in a record's text.
    pub trace_header: Option<ReadTraceHeader>,
}

impl Reads {
    /// Reads with these functions.
    #[must_use]
    pub const fn with(functions: &'static ReadFunctions) -> Self {
        Self(Some(functions))
    }
}

/// Finds the attribute of a name in a record's text.
pub type ReadAttribute = fn(record: &str, name: &str) -> Option<String>;

/// Finds the trace header in a record's text.
pub type ReadTraceHeader = fn(record: &str) -> Option<String>;

/// A record as OpenTelemetry's conventions for messaging describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messaging<'a> {
    /// The system that delivers it: `aws_sqs`, `kafka`, ...
    pub system: &'static str,
    /// The name of its queue, topic or stream, if that is known.
    pub destination: Option<&'a str>,
    /// Its id, if the system has chosen it.
    pub message_id: Option<&'a str>,
}

/// Why a record cannot be had in the type that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// There is none.
    #[error(
        "this call has no record: only handlers of an event source's records are given one; \
         in a test, set it with `Call::with_raw_record`"
    )]
    Missing,
    /// It does not fit the type.
    #[error(
        "the record does not fit `{expected}` (at line {line}, column {column}); correct the type, \
         which must be one of the whole record and not of its payload"
    )]
    Decode {
        /// The type.
        expected: &'static str,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
}

impl Delivered {
    /// By this invocation; nothing else is known.
    #[must_use]
    pub fn by(invocation: Arc<dyn Invocation>) -> Self {
        Self { invocation: Some(invocation), ..Self::default() }
    }

    /// With this text of the record, which costs nothing if it is a part of the invocation's event, and
    /// is copied if not.
    #[must_use]
    pub fn record(mut self, text: &str) -> Self {
        let event = self.invocation.as_deref().map(Invocation::event);
        self.record = match event.and_then(|event| part(event, text)) {
            Some(part) => RecordText::Part(part),
            None => RecordText::Own(Arc::from(text)),
        };
        self
    }

    /// Received this often, this time included.
    #[must_use]
    pub fn receives(mut self, receives: Option<u32>) -> Self {
        self.receives = receives.unwrap_or_default();
        self
    }

    /// With attributes and a trace header that are read from the record in this way.
    #[must_use]
    pub const fn reads(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// In the trace of the invocation, because this record caused it.
    #[must_use]
    pub const fn in_trace_of_invocation(mut self) -> Self {
        self.is_cause = true;
        self
    }

    /// The claim of its key keeps this text, until the key is completed or has failed permanently
    /// ([`IdempotencyRecord::payload`](lambda_idempotency_core::record::IdempotencyRecord::payload)): what is
    /// needed to do the work again where nothing delivers the record again.
    #[must_use]
    pub fn kept(mut self, kept: Option<Json>) -> Self {
        self.kept = kept;
        self
    }

    pub(crate) const fn take_kept(&mut self) -> Option<Json> {
        self.kept.take()
    }

    pub(crate) fn trace_context(&self) -> Option<TraceContext> {
        if let Some(Set { trace: Some(context), .. }) = self.set.as_deref() {
            return Some(*context);
        }
        let own = self.attribute("traceparent").and_then(|text| TraceContext::parse(&text));
        own.or_else(|| {
            if self.is_cause {
                return TraceContext::parse(self.invocation()?.trace_header()?);
            }
            let read = self.reads.0?.trace_header?;
            TraceContext::parse(&read(self.text()?)?)
        })
    }

    pub(crate) fn set_trace_context(&mut self, context: TraceContext) {
        self.set.get_or_insert_default().trace = Some(context);
    }

    pub(crate) fn described<'r>(&self, record: &'r RecordId) -> Option<Messaging<'r>> {
        self.invocation()?.messaging(record)
    }

    pub(crate) fn invocation(&self) -> Option<&dyn Invocation> {
        self.invocation.as_deref()
    }

    pub(crate) fn set_invocation(&mut self, invocation: Arc<dyn Invocation>) {
        // The text may be a part of the other one's event.
        let record = self.text().map(Arc::from);
        self.record = record.map_or(RecordText::None, RecordText::Own);
        self.invocation = Some(invocation);
    }

    pub(crate) fn set_record(&mut self, text: &str) {
        self.record = RecordText::Own(Arc::from(text));
    }

    pub(crate) fn set_attribute(&mut self, name: &str, value: &str) {
        let all = &mut self.set.get_or_insert_default().attributes;
        all.retain(|(known, _)| known != name);
        all.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) const fn receive_count(&self) -> Option<u32> {
        match self.receives {
            0 => None,
            receives => Some(receives),
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.record {
            RecordText::None => None,
            RecordText::Part(part) => self.invocation()?.event().get(part.range()?),
            RecordText::Own(text) => Some(text),
        }
    }

    pub(crate) fn decode<'d, T: Deserialize<'d>>(&'d self) -> Result<T, RecordError> {
        let text = self.text().ok_or(RecordError::Missing)?;
        serde_json::from_str(text).map_err(|error| RecordError::Decode {
            expected: type_name::<T>(),
            line: error.line(),
            column: error.column(),
        })
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        let set = self.set.as_deref().map(|set| &set.attributes).filter(|set| !set.is_empty());
        match set {
            Some(all) => {
                all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
            None => (self.reads.0?.attribute?)(self.text()?, name),
        }
    }
}

impl EventRange {
    fn range(self) -> Option<Range<usize>> {
        Some(usize::try_from(self.start).ok()?..usize::try_from(self.end).ok()?)
    }
}

/// Where `text` is in `event`, if it is borrowed from it.
fn part(event: &str, text: &str) -> Option<EventRange> {
    let start = text.as_ptr().addr().checked_sub(event.as_ptr().addr())?;
    let range = start..start.checked_add(text.len())?;
    // The same bytes in the same position: not a text that was copied elsewhere.
    let found = event.get(range.clone())?;
    let part = EventRange { start: range.start.try_into().ok()?, end: range.end.try_into().ok()? };
    std::ptr::eq(found, text).then_some(part)
}

/// Which record of which source.
///
/// Log this value itself, or its [`label`](Self::label), and not its `id`: where an application has
/// chosen the id, `Display`, `Debug` and the label show a hash of it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordId {
    /// The kind of source: `sqs`, `sns`, `eventbridge`, ...
    pub source: &'static str,
    /// The record's id in that source: message id, event id, ... As the source delivers it, and so
    /// not for logs.
    pub id: Arc<str>,
    /// The queue, topic or bus it came from.
    pub arn: Option<Arc<str>>,
    /// The text that is shown in place of an id that an application has chosen.
    hash: Option<Arc<str>>,
}

impl RecordId {
    /// The record `id` of a source.
    #[must_use]
    pub fn new(source: &'static str, id: impl Into<Arc<str>>) -> Self {
        Self { source, id: id.into(), arn: None, hash: None }
    }

    /// Adds where it came from.
    #[must_use]
    pub fn with_arn(mut self, arn: Option<Arc<str>>) -> Self {
        self.arn = arn;
        self
    }

    /// Shows a hash instead of the id, for ids that applications choose, which may contain anything. An
    /// empty id stays empty.
    ///
    /// ```
    /// use lambda_idempotency_engine::call::RecordId;
    /// let record = RecordId::new("rabbitmq", "ann@example.com").hidden();
    /// assert_eq!(&*record.id, "ann@example.com");
    /// assert_eq!(record.to_string(), "rabbitmq record #06f0ffecefef");
    /// ```
    #[must_use]
    pub fn hidden(self) -> Self {
        let digest = Digest::new(Self::HASH);
        self.shown_as(digest)
    }

    /// Makes the hash of a [`hidden`](Self::hidden) id with a secret, so that it takes the secret to
    /// find the id by trying. Changes nothing about an id that is shown.
    #[must_use]
    pub fn hashed_with(self, secret: &Secret) -> Self {
        match self.hash {
            Some(_) => self.shown_as(Digest::with_secret(secret, Self::HASH)),
            None => self,
        }
    }

    const HASH: &'static [u8] = b"lambda-idempotency record id 1";

    fn shown_as(mut self, mut digest: Digest) -> Self {
        // Enough to tell the records of a log from one another.
        const DIGITS: usize = 12;
        if !self.id.is_empty() {
            digest.part(self.source.as_bytes());
            digest.part(self.id.as_bytes());
            let digits: String = digest.hex().chars().take(DIGITS).collect();
            self.hash = Some(format!("#{digits}").into());
        }
        self
    }

    /// The name of the record in logs and errors: its id, or `#` and 12 hexadecimal digits of a hash of an
    /// id that an application has chosen.
    #[must_use]
    pub fn label(&self) -> &str {
        self.shown()
    }

    pub(crate) fn shown(&self) -> &Arc<str> {
        self.hash.as_ref().unwrap_or(&self.id)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record {}", self.source, self.label())
    }
}

impl fmt::Debug for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordId")
            .field("source", &self.source)
            .field("id", &self.label())
            .field("arn", &self.arn)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Event(String);

    impl Invocation for Event {
        fn request_id(&self) -> &str {
            "r-1"
        }

        fn event(&self) -> &str {
            &self.0
        }

        fn trace_header(&self) -> Option<&str> {
            None
        }

        fn messaging<'r>(&self, _record: &'r RecordId) -> Option<Messaging<'r>> {
            None
        }
    }

    #[test]
    fn a_part_of_the_event_is_not_copied() {
        let event = Arc::new(Event(r#"{"Records":[{"body":"a"}]}"#.to_owned()));
        let record = event.0.get(12..24).unwrap();
        assert_eq!(record, r#"{"body":"a"}"#);
        let delivered = Delivered::by(Arc::<Event>::clone(&event)).record(record);
        assert!(std::ptr::eq(delivered.text().unwrap(), record));
        let elsewhere = record.to_owned();
        let copied = Delivered::by(event.clone()).record(&elsewhere);
        assert_eq!(copied.text(), Some(record));
        assert!(!std::ptr::eq(copied.text().unwrap(), record));
    }

    #[test]
    fn a_record_outlives_a_change_of_the_invocation() {
        let event = Arc::new(Event("[1]".to_owned()));
        let mut delivered = Delivered::by(event.clone()).record(&event.0);
        delivered.set_invocation(Arc::new(Event(String::new())));
        assert_eq!(delivered.text(), Some("[1]"));
    }
}
