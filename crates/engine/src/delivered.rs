//! How a record was delivered: what a handler can ask its [`Call`](crate::call::Call) about, beside the
//! payload.
//!
//! A source fills in a [`Delivered`] for each record. It holds references and numbers, no copies: the
//! record's text is a part of the event's, which the calls of one [`Invocation`] share, and is parsed
//! when a handler asks for something in it.

use std::{
    any::{Any, type_name},
    ops::Range,
    sync::Arc,
};

use serde::Deserialize;

use crate::{call::RecordId, trace_context::TraceContext};

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
}

/// How a record was delivered.
#[derive(Clone, Default)]
pub struct Delivered {
    invocation: Option<Arc<dyn Invocation>>,
    record: Text,
    receives: Option<u32>,
    attributes: Attributes,
    trace: Trace,
    messaging: Option<ReadMessaging>,
}

/// The text of the record.
#[derive(Clone, Default)]
enum Text {
    #[default]
    None,
    /// This part of the event.
    Part(Range<usize>),
    /// What was made of it.
    Own(Arc<str>),
}

/// How attributes are found.
#[derive(Clone, Default)]
enum Attributes {
    #[default]
    None,
    /// In the record's text.
    Read(ReadAttribute),
    /// As a test has set them.
    Set(Vec<(String, String)>),
}

/// Finds the attribute of a name in a record's text.
pub type ReadAttribute = fn(record: &str, name: &str) -> Option<String>;

/// Where the record's trace is named, besides an attribute `traceparent`.
#[derive(Clone, Copy, Default)]
enum Trace {
    #[default]
    None,
    /// In the record's text.
    Record(ReadTraceHeader),
    /// In the invocation, which is the record's alone.
    Invocation,
    /// As a test has set it.
    Set(TraceContext),
}

/// Finds the trace header in a record's text.
pub type ReadTraceHeader = fn(record: &str) -> Option<String>;

/// A record as OpenTelemetry's conventions for messaging describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messaging<'a> {
    /// What delivers it: `aws_sqs`, `kafka`, ...
    pub system: &'static str,
    /// The name of its queue, topic or stream, if that is known.
    pub destination: Option<&'a str>,
    /// Its id, if the system has chosen it.
    pub message_id: Option<&'a str>,
}

/// Describes a record; `None` if its source is not one of messages.
pub type ReadMessaging = fn(record: &RecordId) -> Option<Messaging<'_>>;

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
            Some(range) => Text::Part(range),
            None => Text::Own(Arc::from(text)),
        };
        self
    }

    /// Received this often, this time included.
    #[must_use]
    pub const fn receives(mut self, receives: Option<u32>) -> Self {
        self.receives = receives;
        self
    }

    /// With attributes that are found in the record so.
    #[must_use]
    pub fn attributes(mut self, read: Option<ReadAttribute>) -> Self {
        self.attributes = read.map_or(Attributes::None, Attributes::Read);
        self
    }

    /// With a trace header that is found in the record so.
    #[must_use]
    pub fn trace_header(mut self, read: Option<ReadTraceHeader>) -> Self {
        self.trace = read.map_or(self.trace, Trace::Record);
        self
    }

    /// In a trace that the invocation names, since this record caused it.
    #[must_use]
    pub const fn in_trace_of_invocation(mut self) -> Self {
        self.trace = Trace::Invocation;
        self
    }

    /// With a record that is described so.
    #[must_use]
    pub const fn messaging(mut self, read: ReadMessaging) -> Self {
        self.messaging = Some(read);
        self
    }

    pub(crate) fn trace_context(&self) -> Option<TraceContext> {
        if let Trace::Set(context) = self.trace {
            return Some(context);
        }
        let own = self.attribute("traceparent").and_then(|text| TraceContext::parse(&text));
        own.or_else(|| match self.trace {
            Trace::Record(read) => TraceContext::parse(&read(self.text()?)?),
            Trace::Invocation => TraceContext::parse(self.invocation()?.trace_header()?),
            Trace::None | Trace::Set(_) => None,
        })
    }

    pub(crate) const fn set_trace_context(&mut self, context: TraceContext) {
        self.trace = Trace::Set(context);
    }

    pub(crate) fn described<'r>(&self, record: &'r RecordId) -> Option<Messaging<'r>> {
        self.messaging.and_then(|read| read(record))
    }

    pub(crate) fn invocation(&self) -> Option<&dyn Invocation> {
        self.invocation.as_deref()
    }

    pub(crate) fn set_invocation(&mut self, invocation: Arc<dyn Invocation>) {
        // The text may be a part of the other one's event.
        let record = self.text().map(Arc::from);
        self.record = record.map_or(Text::None, Text::Own);
        self.invocation = Some(invocation);
    }

    pub(crate) fn set_record(&mut self, text: &str) {
        self.record = Text::Own(Arc::from(text));
    }

    pub(crate) fn set_attribute(&mut self, name: &str, value: &str) {
        let mut all = match std::mem::take(&mut self.attributes) {
            Attributes::Set(all) => all,
            _ => Vec::new(),
        };
        all.retain(|(known, _)| known != name);
        all.push((name.to_owned(), value.to_owned()));
        self.attributes = Attributes::Set(all);
    }

    pub(crate) const fn receive_count(&self) -> Option<u32> {
        self.receives
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.record {
            Text::None => None,
            Text::Part(range) => self.invocation()?.event().get(range.clone()),
            Text::Own(text) => Some(text),
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
        match &self.attributes {
            Attributes::None => None,
            Attributes::Read(read) => read(self.text()?, name),
            Attributes::Set(all) => {
                all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
            }
        }
    }
}

/// Where `text` stands in `event`, if it is borrowed from it.
fn part(event: &str, text: &str) -> Option<Range<usize>> {
    let start = text.as_ptr().addr().checked_sub(event.as_ptr().addr())?;
    let range = start..start.checked_add(text.len())?;
    // The same bytes at the same place: not a text that was copied elsewhere.
    event.get(range.clone()).filter(|found| std::ptr::eq(*found, text)).map(|_| range)
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
