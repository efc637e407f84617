//! The settings of a source.

use std::{fmt, sync::Arc};

use lambda_idempotency_core::{contained::caught, outcome::Outcome};
use lambda_idempotency_keys::KeyPath;
use serde_json::{Value, value::RawValue};

use super::{
    busy::Hook,
    filter::{Filter, Found, Kind},
    sink::{DivertReason, Sink},
};
use crate::{envelope::Envelope, error::ResultLost};

/// The settings of one source. Each type of [`source`](crate::source) has methods for those that have an effect there.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The source's own path of the operation's key.
    pub(crate) key: Option<KeyPath>,
    /// The source's own path of the operation's fingerprint.
    pub(crate) fingerprint: Option<KeyPath>,
    pub(crate) filters: Vec<Filter>,
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) whole_record: bool,
    pub(crate) order: Option<KeepOrder>,
    /// Whether the records of a batch are one order group.
    pub(crate) in_order: bool,
    /// Whether the invocation fails if a record is returned.
    pub(crate) returns_whole_batch: bool,
    /// How many handlers run at the same time.
    pub(crate) concurrency: Option<usize>,
    pub(crate) on_busy: Option<Hook>,
    /// Whether a direct invocation is identified by its request id.
    pub(crate) by_request_id: bool,
    /// Makes the answer to a direct invocation.
    pub(crate) answer: Option<Answer>,
    /// The most bytes that a claim keeps of its record, if it keeps it.
    pub(crate) recoverable: Option<usize>,
    /// Takes permanent failures and mismatches.
    pub(crate) failures: Option<Sink>,
    /// Takes bad records.
    pub(crate) bad_records: Option<Sink>,
    /// A setting that was set more than once.
    pub(super) replaced: Option<&'static str>,
}

impl Settings {
    /// Sets what has one value, and notes whether that replaces another.
    pub(crate) fn set<T>(
        &mut self,
        setting: &'static str,
        place: impl FnOnce(&mut Self) -> &mut Option<T>,
        value: T,
    ) {
        if place(self).replace(value).is_some() {
            self.replaced = Some(setting);
        }
    }

    /// Adds a filter: records have to pass this one, too.
    pub(super) fn only_from(&mut self, kind: Kind, name: String) {
        self.filters.push(Filter { kind, name });
    }

    /// Whether the source takes records with these names or ARNs. Without filters it takes all.
    pub(super) fn takes(&self, found: &[Found<'_>]) -> bool {
        self.filters.iter().all(|filter| found.iter().any(|found| filter.takes(*found)))
    }

    /// Whether the source has a filter.
    pub(crate) const fn is_filtered(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether it takes every record that the other takes.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.filters.iter().all(|one| other.filters.iter().any(|other| one.covers(other)))
    }

    /// The names in the filters, for errors.
    pub(crate) fn filter_names(&self) -> impl Iterator<Item = &str> {
        self.filters.iter().map(|filter| &*filter.name)
    }

    /// Whether records are diverted.
    pub(crate) const fn has_sink(&self) -> bool {
        self.failures.is_some() || self.bad_records.is_some()
    }

    /// The sink for a record with this outcome, and why it will never be processed, if that is so.
    pub(crate) fn sink_for(&self, outcome: &Outcome) -> Option<(&Sink, DivertReason)> {
        let reason = DivertReason::of(outcome)?;
        let sink = match reason {
            DivertReason::BadRecord(_) => self.bad_records.as_ref(),
            _ => self.failures.as_ref(),
        };
        sink.map(|sink| (sink, reason))
    }

    /// Why these settings of the source of this name cannot work, if so.
    pub(crate) fn mistake(&self, source: &str) -> Option<String> {
        self.replaced_setting()
            .or_else(|| self.mistaken_filter(source))
            .or_else(|| self.contradicting_filters())
            .or_else(|| self.mistaken_envelope())
            .or_else(|| self.keeps_nothing())
    }

    /// A setting that is given twice.
    fn replaced_setting(&self) -> Option<String> {
        self.replaced.map(|setting| {
            format!("`.{setting}(..)` replaces what was set before on the same source; set it once")
        })
    }

    /// A filter that no record can pass.
    fn mistaken_filter(&self, source: &str) -> Option<String> {
        self.filters.iter().find_map(|filter| {
            let problem = filter.mistake(source)?;
            let Filter { kind, name } = filter;
            Some(format!(
                "`.{}({name:?})` of {source} is a name that no record can match: {problem}; give the name alone, or \
                 the whole ARN where it has one",
                kind.setting()
            ))
        })
    }

    /// Two filters that no record can pass together.
    fn contradicting_filters(&self) -> Option<String> {
        self.filters.iter().enumerate().find_map(|(nth, filter)| {
            let mut before = self.filters.iter().take(nth);
            let before = before.find(|before| !before.may_meet(filter))?;
            let (before, setting) = (before.kind.setting(), filter.kind.setting());
            Some(format!(
                "no record can match both `.{before}(..)` and another `.{setting}(..)`; give each a source of its own"
            ))
        })
    }

    /// An envelope with which every record would be a bad one.
    fn mistaken_envelope(&self) -> Option<String> {
        self.envelopes.iter().enumerate().find_map(|(nth, inner)| {
            let mut outside = self.envelopes.iter().take(nth);
            let outer = outside.find(|outer| *outer == inner || **outer == Envelope::S3)?;
            Some(format!(
                "no record has `Envelope::{inner:?}` in `Envelope::{outer:?}`; name each envelope once, the outermost first"
            ))
        })
    }

    /// A limit that no record is within.
    fn keeps_nothing(&self) -> Option<String> {
        (self.recoverable == Some(0)).then(|| {
            "`.recoverable(0)` keeps no record, so none could be recovered; give the most bytes of a record, such as \
             65536, or leave the setting out"
                .to_owned()
        })
    }
}

/// Which records of a stream or topic wait for each other.
///
/// Records that wait for each other are an *order group*: they are processed one at a time, in the
/// order of the event, and once one returns to its source, none of the later ones is started.
/// Groups are processed concurrently. SQS FIFO queues have message groups instead; the remaining
/// sources keep no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeepOrder {
    /// Records with the same key: Kinesis' partition key, the key of a DynamoDB item, a DocumentDB
    /// document's key, a Kafka message's key. The default for Kinesis, DynamoDB and DocumentDB.
    Key,
    /// All records of a shard or partition. The default for Kafka.
    Shard,
    /// No order: no record waits for another, also when one returns to its source. For Kafka in
    /// queue mode (share groups), which keeps no order and limits the number of deliveries: a
    /// record that waited for others at every delivery would reach that limit without ever having
    /// been processed.
    None,
}

/// Makes an answer from a result and an event.
#[derive(Clone)]
pub(crate) struct Answer(Arc<Make>);

/// From the handler's result and the event to the answer.
type Make = dyn Fn(Value, &Value) -> Value + Send + Sync;

impl Answer {
    pub(super) fn new(make: impl Fn(Value, &Value) -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// The answer to this event.
    pub(crate) fn make(&self, result: &RawValue, event: &RawValue) -> Result<Value, ResultLost> {
        let read = |json: &RawValue| serde_json::from_str(json.get());
        let (Ok(result), Ok(event)) = (read(result), read(event)) else {
            return Err(ResultLost::NoAnswer);
        };
        caught(|| (self.0)(result, &event)).ok_or(ResultLost::NoAnswer)
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answer")
    }
}
