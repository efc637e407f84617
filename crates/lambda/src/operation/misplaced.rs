//! Where each setting has an effect. Elsewhere it would be ignored silently, so it is refused.

use lambda_idempotency_core::policy::{Mode, OnPermanentFailure, Policy};
use lambda_idempotency_engine::batch::AfterFailure;

use super::{Operation, recoverable::DEFAULT_BYTES};
use crate::{
    bad_record::OnBadRecord,
    error::{ConfigError, SettingScope, SettingsMistake},
    on_missing_key::OnMissingKey,
};

/// How work reaches an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryPoint {
    /// An event source, by its name.
    Source(&'static str),
    /// [`Idempotency::event`](crate::Idempotency::event).
    Event,
    /// `Idempotency::http`.
    #[cfg(feature = "http")]
    Http,
    /// [`Idempotency::run`](crate::Idempotency::run).
    Run,
    /// [`Idempotency::run_many`](crate::Idempotency::run_many).
    RunMany,
}

/// A setting that has no effect at some entry points.
struct Row {
    setting: &'static str,
    is_set: fn(&Operation) -> bool,
    scope: SettingScope,
}

const fn row(setting: &'static str, is_set: fn(&Operation) -> bool, scope: SettingScope) -> Row {
    Row { setting, is_set, scope }
}

/// Every setting that does not have an effect everywhere. A pipe delivers records of queues,
/// streams and brokers. A setting for all event sources concerns several records, the record around
/// a payload, or the response to the source; even a source with one record for each event can
/// deliver several, in an envelope. `tests/behaviour/misplaced.rs` tries all settings at all entry points.
const ROWS: [Row; 25] = [
    row("queue", |o| o.is_from("queue"), SettingScope::Sources(&["sqs", "pipe"])),
    row("topic", |o| o.is_from("topic"), SettingScope::Sources(&["sns", "kafka"])),
    row("stream", |o| o.is_from("stream"), SettingScope::Sources(&["kinesis", "pipe"])),
    row(
        "source_table",
        |o| o.is_from("source_table"),
        SettingScope::Sources(&["dynamodb", "pipe"]),
    ),
    row("bucket", |o| o.is_from("bucket"), SettingScope::Sources(&["s3"])),
    row(
        "broker",
        |o| o.is_from("broker"),
        SettingScope::Sources(&["activemq", "rabbitmq", "kafka", "pipe"]),
    ),
    row("cluster", |o| o.is_from("cluster"), SettingScope::Sources(&["documentdb"])),
    row("schedule", |o| o.is_from("schedule"), SettingScope::Sources(&["scheduler"])),
    row("event_source", |o| o.is_from("event_source"), SettingScope::Sources(&["eventbridge"])),
    row("detail_type", |o| o.is_from("detail_type"), SettingScope::Sources(&["eventbridge"])),
    row(
        "order",
        |o| o.order.is_some(),
        SettingScope::Sources(&["kinesis", "dynamodb", "documentdb", "kafka", "pipe"]),
    ),
    row("after_failure", |o| o.after_failure != AfterFailure::default(), SettingScope::AllSources),
    // Other sources have no partial responses: their invocation fails in any case.
    row(
        "return_whole_batch",
        |o| o.returns_whole_batch,
        SettingScope::Sources(&["sqs", "kinesis", "dynamodb", "kafka", "pipe"]),
    ),
    row(
        "concurrency",
        |o| o.policy.concurrency != Policy::default().concurrency,
        SettingScope::AllSourcesAndRunMany,
    ),
    row("envelope", |o| !o.envelopes.is_empty(), SettingScope::AllSources),
    row("whole_record", |o| o.whole_record, SettingScope::AllSources),
    row(
        "on_bad_record",
        |o| matches!(o.bad_record, Some(OnBadRecord::Divert(_))),
        SettingScope::AllSources,
    ),
    // A caller that waits for a result gets an error for a permanent failure or a mismatch.
    row("divert", |o| o.sink.is_some(), SettingScope::AllSources),
    row("on_busy", |o| o.on_busy.is_some(), SettingScope::AllSources),
    // A caller that waits for a result gets an error for a permanent failure in any case.
    row(
        "on_permanent_failure",
        |o| o.policy.on_permanent_failure != OnPermanentFailure::Return,
        SettingScope::AllSources,
    ),
    // What is run again needs a handler, which a function has for each operation.
    row("recoverable", |o| o.recoverable == Some(DEFAULT_BYTES), SettingScope::AllSources),
    row("recoverable_up_to", |o| o.recoverable.is_some(), SettingScope::AllSources),
    // A client that sends no key must not get a success.
    row("on_missing_key", Operation::skips_without_key, SettingScope::AllButHttp),
    // A service of whole events has no call to collect with.
    row("optimistic", |o| o.policy.mode == Mode::Optimistic, SettingScope::AllButEvent),
    row("transactional", |o| o.policy.mode == Mode::Transactional, SettingScope::AllButEvent),
];

impl EntryPoint {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source(name) => name,
            Self::Event => "`.event(..)`",
            #[cfg(feature = "http")]
            Self::Http => "`.http(..)`",
            Self::Run => "`.run(..)`",
            Self::RunMany => "`.run_many(..)`",
        }
    }
}

impl SettingScope {
    fn has(&self, entry_point: EntryPoint) -> bool {
        match (self, entry_point) {
            (Self::Sources(sources), EntryPoint::Source(name)) => sources.contains(&name),
            (Self::Sources(_), _) => false,
            (_, EntryPoint::Source(_)) => true,
            (Self::AllSources, _) => false,
            (Self::AllSourcesAndRunMany, entry_point) => entry_point == EntryPoint::RunMany,
            (Self::AllButEvent, entry_point) => entry_point != EntryPoint::Event,
            #[cfg(feature = "http")]
            (Self::AllButHttp, EntryPoint::Http) => false,
            (Self::AllButHttp, _) => true,
        }
    }
}

impl Operation {
    /// Refuses a setting that has no effect at this entry point: a filter that never applies, an order
    /// that the source does not keep, a hook that is never called.
    pub(crate) fn fits(&self, entry_point: EntryPoint) -> Result<(), ConfigError> {
        let has_no_effect = |row: &&Row| (row.is_set)(self) && !row.scope.has(entry_point);
        let Some(row) = ROWS.iter().find(has_no_effect) else { return self.order_fits() };
        Err(ConfigError::Misplaced {
            operation: self.shared_name(),
            source_name: entry_point.name(),
            setting: row.setting,
            scope: row.scope,
        })
    }

    /// A pipe delivers records of streams, too, so `order` has an effect for it, but not for its queues.
    fn order_fits(&self) -> Result<(), ConfigError> {
        if self.order.is_none() || !self.is_from("queue") {
            return Ok(());
        }
        let mistake = SettingsMistake::NoEffectBeside {
            setting: "order",
            other: "queue",
            reason: "a FIFO queue always keeps the order of its message groups, and other queues have none",
        };
        Err(ConfigError::Settings { operation: self.shared_name(), mistake })
    }

    fn skips_without_key(&self) -> bool {
        self.on_missing_key == OnMissingKey::Skip
    }
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use crate::{error::SettingScope, source::ALL};

    #[test]
    fn every_source_name_in_the_table_exists() {
        let names: Vec<_> = ALL.iter().map(|source| source.name()).collect();
        for row in ROWS {
            let SettingScope::Sources(sources) = row.scope else { continue };
            for source in sources {
                assert!(names.contains(source), "{}: {source}", row.setting);
            }
        }
    }
}
