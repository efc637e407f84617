//! The settings of a source, and those that several sources have, as methods of their types.

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
            .or_else(|| self.idle_concurrency(source))
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

    /// A number of handlers beside an order in which the records of a batch are one group. A batch of Kafka may have several
    /// partitions.
    fn idle_concurrency(&self, source: &str) -> Option<String> {
        let is_one_shard = ["kinesis", "dynamodb", "documentdb"].contains(&source);
        let order = match self.order {
            _ if self.in_order => ".in_order()",
            Some(KeepOrder::Shard) if is_one_shard => ".order(KeepOrder::Shard)",
            _ => return None,
        };
        self.concurrency.is_some().then(|| {
            format!(
                "`.concurrency(..)` has no effect beside `{order}`, with which one record of a batch is processed at a \
                 time; remove one of the two"
            )
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

/// Makes the public type of a source: the settings that exist there, in groups, and what reads its events.
///
/// Methods and not a trait with defaults, so that a user imports the source alone, and a setting that a source lacks
/// does not compile.
macro_rules! source {
    ($(#[$doc:meta])* $name:ident => $events:ident; $($group:ident)*) => {
        // The field is public so that the compiler knows `Sqs` as a function, and says what to write in its place: `Sqs::new()`.
        $(#[$doc])*
        #[derive(Clone, Debug, Default)]
        #[must_use = "a source does nothing until it is given to `.on(..)`"]
        pub struct $name(#[doc(hidden)] pub $crate::source::settings::Settings);

        impl $name {
            /// With every setting at its default: all records of this kind.
            pub fn new() -> Self {
                Self::default()
            }
        }

        impl $crate::source::contract::sealed::Sealed for $name {
            fn parts(self) -> $crate::source::contract::Parts {
                $crate::source::contract::Parts { events: Box::new($events), settings: self.0 }
            }
        }

        impl $crate::source::contract::Source for $name {}

        /// Reads its events.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $events;

        $crate::source::settings::group!(common $name);
        $crate::source::settings::group!(diverting $name);
        $($crate::source::settings::group!($group $name);)*
    };
}

macro_rules! group {
    (common $name:ident) => {
        /// # Settings of every source
        impl $name {
            /// This source's own path of the operation's key, where the key is at another place than in the payloads of
            /// other sources, or in the record around the payload: [`record`](crate::keys::record). Default: the
            /// operation's [`key`](crate::Operation::key).
            ///
            /// The *place* of the key may differ from source to source. Its number of parts and their structure (`id`,
            /// `[id]`, `{order: id}`) may not: they would make different keys.
            pub fn key(mut self, path: impl $crate::keys::IntoKeyPath) -> Self {
                self.0.set("key", |all| &mut all.key, path.into_path());
                self
            }

            /// This source's own path of the operation's [`fingerprint`](crate::Operation::fingerprint). Default: the
            /// operation's.
            pub fn fingerprint(mut self, path: impl $crate::keys::IntoKeyPath) -> Self {
                self.0.set("fingerprint", |all| &mut all.fingerprint, path.into_path());
                self
            }

            /// Keeps each record of up to this many bytes with the claim of its key, until the key is completed or has
            /// failed permanently: if the worker dies and nothing delivers the record again, a
            /// [`Recovery`](crate::recovery::Recovery) finds it and calls the handler. Larger records are processed as
            /// always, and the log has a warning. Default: nothing is kept.
            ///
            /// **The store then holds payloads**: see [recovery](crate::guide::recovery) for who may read them, for
            /// the cost, and for what it does not cover. The size is that of the record as JSON text; on DynamoDB each
            /// KiB is one more write unit for the claim and one for the completion, and an item has at most 400 KB. 64
            /// KiB are a usual limit.
            pub fn recoverable(mut self, most_bytes: usize) -> Self {
                self.0.set("recoverable", |all| &mut all.recoverable, most_bytes);
                self
            }

            /// Calls `hook` with each record that is returned because another worker holds its key, before the function
            /// responds to the source. Default: no hook.
            ///
            /// Of all hooks of an invocation, 64 run at a time. After two seconds, or half of the remaining time if that
            /// is shorter, they are dropped, and no other is called. A hook that fails or panics has no effect on the
            /// outcome.
            ///
            /// In [optimistic mode](crate::Mode::Optimistic), which holds no key, it is called only for one that was
            /// claimed before the operation had this mode.
            pub fn on_busy(
                mut self,
                hook: impl $crate::handler::ClonedForEachCall
                + $crate::handler::Callback<$crate::source::busy::BusyRecord, ()>,
            ) -> Self {
                let hook = $crate::source::busy::Hook::new(hook);
                self.0.set("on_busy", |all| &mut all.on_busy, hook);
                self
            }
        }
    };

    (diverting $name:ident) => {
        /// # Settings of sources whose records nobody waits for
        impl $name {
            /// Gives the records that will never be processed to `sink`, so that they do not block a stream or a FIFO
            /// queue: both [failures](Self::divert_failures) and [bad records](Self::divert_bad_records). Default: they
            /// return to their source until it discards them or moves them to a dead-letter queue.
            ///
            /// A record is acknowledged only if `sink` returned `Ok`. Otherwise it is returned, and its next delivery, if
            /// there is one, calls `sink` again, with the same [id](crate::source::DivertedRecord::id). See [how records are diverted](crate::source#records-that-will-never-be-processed).
            pub fn divert<R: $crate::source::sink::SinkResult>(
                mut self,
                sink: impl $crate::handler::ClonedForEachCall
                + $crate::handler::Callback<$crate::source::sink::DivertedRecord, R>,
            ) -> Self {
                let sink = $crate::source::sink::Sink::new(sink);
                self.0.set("divert", |all| &mut all.failures, sink.clone());
                self.0.set("divert", |all| &mut all.bad_records, sink);
                self
            }

            /// As [`divert`](Self::divert), for permanent failures and mismatches alone.
            pub fn divert_failures<R: $crate::source::sink::SinkResult>(
                mut self,
                sink: impl $crate::handler::ClonedForEachCall
                + $crate::handler::Callback<$crate::source::sink::DivertedRecord, R>,
            ) -> Self {
                let sink = $crate::source::sink::Sink::new(sink);
                self.0.set("divert_failures", |all| &mut all.failures, sink);
                self
            }

            /// As [`divert`](Self::divert), for records alone that cannot be processed as they are: not readable,
            /// without a key, or not of the handler's type.
            pub fn divert_bad_records<R: $crate::source::sink::SinkResult>(
                mut self,
                sink: impl $crate::handler::ClonedForEachCall
                + $crate::handler::Callback<$crate::source::sink::DivertedRecord, R>,
            ) -> Self {
                let sink = $crate::source::sink::Sink::new(sink);
                self.0.set("divert_bad_records", |all| &mut all.bad_records, sink);
                self
            }
        }
    };

    (payload $name:ident) => {
        /// # Settings of sources whose payload is a part of the record
        impl $name {
            /// Calls the handler with the whole record as AWS delivers it, instead of its payload: for binary payloads.
            /// **Key expressions are then applied to the record too**, and no longer to its payload. Default: the
            /// payload.
            ///
            /// A handler that needs the record *in addition to* its payload gets it from its [`Call`](crate::Call):
            /// `call.attribute(..)`, `call.record_as()`. The types of the `aws_lambda_events` crate can be used, such
            /// as its `SqsMessage`. Kafka's records have their key, value and headers as text.
            pub fn whole_record(mut self) -> Self {
                self.0.whole_record = true;
                self
            }
        }
    };

    (messages $name:ident) => {
        /// # Settings of sources whose payload a producer has written
        impl $name {
            /// Removes an envelope from the payload, such as the SNS notification in the body of an SQS message. Call it
            /// once for each envelope, outermost first. Default: none. See [`Envelope`](crate::source::Envelope).
            ///
            /// A record that is not in the envelope is a bad record.
            pub fn envelope(mut self, envelope: $crate::envelope::Envelope) -> Self {
                self.0.envelopes.push(envelope);
                self
            }
        }
    };

    (batches $name:ident) => {
        /// # Settings of sources that deliver several records
        impl $name {
            /// How many handlers run concurrently for the records of one batch; 0 counts as 1. Default: 16. Records of
            /// one order group run one after another in any case. Handlers that compute should not be more than the
            /// function has processors: see
            /// [the guide](crate::guide::failure_modes#handlers-that-compute-or-block).
            pub fn concurrency(mut self, handlers: usize) -> Self {
                self.0.set("concurrency", |all| &mut all.concurrency, handlers);
                self
            }
        }
    };

    (unordered $name:ident) => {
        /// # Settings of sources without an order
        impl $name {
            /// Processes the records of a batch one after the other, in the order of the event: they are one order group.
            /// After a record that returns to its source, the rest of the batch is returned unstarted. Default: records
            /// do not wait for each other (in a FIFO queue, those of different message groups).
            pub fn in_order(mut self) -> Self {
                self.0.in_order = true;
                self
            }
        }
    };

    (partial $name:ident) => {
        /// # Settings of sources with partial batch responses
        impl $name {
            /// For an event source mapping without `FunctionResponseTypes: [ReportBatchItemFailures]`: the invocation
            /// fails if a record is returned, so that the whole batch is delivered again. Default: the answer names the
            /// records that are returned, and the source delivers only those.
            ///
            /// **A source that does not read that answer counts every record as processed**, and the returned ones are
            /// lost. Such a source is [Kafka without provisioned
            /// mode](crate::guide::sources::kafka#without-provisioned-mode). Records of the batch that were processed
            /// are answered from the store when they come again. Where the answer is read, leave the default: an error
            /// costs a delivery of every record of the batch, and a request to the store for each.
            pub fn without_partial_responses(mut self) -> Self {
                self.0.returns_whole_batch = true;
                self
            }
        }
    };

    (ordered $name:ident) => {
        /// # Settings of sources with an order
        impl $name {
            /// Which records wait for each other. Default: [`KeepOrder::Key`](crate::source::KeepOrder::Key), and
            /// [`KeepOrder::Shard`](crate::source::KeepOrder::Shard) for Kafka.
            pub fn order(mut self, order: $crate::source::settings::KeepOrder) -> Self {
                self.0.set("order", |all| &mut all.order, order);
                self
            }
        }
    };
}

pub(super) use {group, source};
