//! The settings that several sources have, as methods of their types.

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

        $crate::source::setters::group!(common $name);
        $crate::source::setters::group!(diverting $name);
        $($crate::source::setters::group!($group $name);)*
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
            /// All hooks of an invocation run concurrently. They are dropped after two seconds, or after half of the
            /// remaining time if that is shorter. A hook that fails or panics has no effect on the outcome.
            ///
            /// In [optimistic mode](crate::Mode::Optimistic), which holds no key, it is called only for one that was
            /// claimed before the operation had this mode.
            pub fn on_busy<F, Fut>(mut self, hook: F) -> Self
            where
                F: Fn($crate::source::busy::BusyRecord) -> Fut + Send + Sync + 'static,
                Fut: Future<Output = ()> + Send + 'static,
            {
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
            pub fn divert<F, Fut>(mut self, sink: F) -> Self
            where
                F: Fn($crate::source::sink::DivertedRecord) -> Fut + Send + Sync + 'static,
                Fut: $crate::source::sink::SinkFuture + Send + 'static,
            {
                let sink = $crate::source::sink::Sink::new(sink);
                self.0.set("divert", |all| &mut all.failures, sink.clone());
                self.0.set("divert", |all| &mut all.bad_records, sink);
                self
            }

            /// As [`divert`](Self::divert), for permanent failures and mismatches alone.
            pub fn divert_failures<F, Fut>(mut self, sink: F) -> Self
            where
                F: Fn($crate::source::sink::DivertedRecord) -> Fut + Send + Sync + 'static,
                Fut: $crate::source::sink::SinkFuture + Send + 'static,
            {
                let sink = $crate::source::sink::Sink::new(sink);
                self.0.set("divert_failures", |all| &mut all.failures, sink);
                self
            }

            /// As [`divert`](Self::divert), for records alone that cannot be processed as they are: not readable,
            /// without a key, or not of the handler's type.
            pub fn divert_bad_records<F, Fut>(mut self, sink: F) -> Self
            where
                F: Fn($crate::source::sink::DivertedRecord) -> Fut + Send + Sync + 'static,
                Fut: $crate::source::sink::SinkFuture + Send + 'static,
            {
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
