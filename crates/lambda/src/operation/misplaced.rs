//! Where each setting has an effect. In other places it would be ignored silently, so it is
//! refused.

use lambda_idempotency_core::policy::{OnPermanentFailure, Policy};
use lambda_idempotency_engine::batch::AfterFailure;

use super::Operation;
use crate::{
    bad_record::OnBadRecord,
    error::{ConfigError, SettingPlaces},
    on_missing_key::OnMissingKey,
};

/// What an operation is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// An event source, by its name.
    Source(&'static str),
    /// [`Idempotency::event`](crate::Idempotency::event).
    Event,
    /// `Idempotency::http`.
    #[cfg(feature = "http")]
    Http,
    /// [`Idempotency::run`](crate::Idempotency::run).
    Run,
}

/// A setting that has no effect in some places.
struct Row {
    setting: &'static str,
    is_set: fn(&Operation) -> bool,
    places: SettingPlaces,
}

const fn row(setting: &'static str, is_set: fn(&Operation) -> bool, places: SettingPlaces) -> Row {
    Row { setting, is_set, places }
}

/// Every setting that does not have an effect everywhere. A pipe delivers records of queues,
/// streams and brokers. A setting for all event sources concerns several records, the record around
/// a payload, or the response to the source; even a source with one record for each event can
/// deliver several, in an envelope. `tests/behaviour/misplaced.rs` tries all settings in all places.
const ROWS: [Row; 20] = [
    row("queue", |o| o.is_from("queue"), SettingPlaces::Sources(&["sqs", "pipe"])),
    row("topic", |o| o.is_from("topic"), SettingPlaces::Sources(&["sns", "kafka"])),
    row("stream", |o| o.is_from("stream"), SettingPlaces::Sources(&["kinesis", "pipe"])),
    row(
        "source_table",
        |o| o.is_from("source_table"),
        SettingPlaces::Sources(&["dynamodb", "pipe"]),
    ),
    row("bucket", |o| o.is_from("bucket"), SettingPlaces::Sources(&["s3"])),
    row(
        "broker",
        |o| o.is_from("broker"),
        SettingPlaces::Sources(&["activemq", "rabbitmq", "kafka", "pipe"]),
    ),
    row("cluster", |o| o.is_from("cluster"), SettingPlaces::Sources(&["documentdb"])),
    row("schedule", |o| o.is_from("schedule"), SettingPlaces::Sources(&["scheduler"])),
    row("event_source", |o| o.is_from("event_source"), SettingPlaces::Sources(&["eventbridge"])),
    row("detail_type", |o| o.is_from("detail_type"), SettingPlaces::Sources(&["eventbridge"])),
    row(
        "order",
        |o| o.order.is_some(),
        SettingPlaces::Sources(&["kinesis", "dynamodb", "documentdb", "kafka", "pipe"]),
    ),
    row("after_failure", |o| o.after_failure != AfterFailure::default(), SettingPlaces::AllSources),
    row(
        "concurrency",
        |o| o.policy.concurrency != Policy::default().concurrency,
        SettingPlaces::AllSources,
    ),
    row("envelope", |o| !o.envelopes.is_empty(), SettingPlaces::AllSources),
    row("whole_record", |o| o.whole_record, SettingPlaces::AllSources),
    row(
        "on_bad_record",
        |o| matches!(o.bad_record, Some(OnBadRecord::Divert(_))),
        SettingPlaces::AllSources,
    ),
    // A caller that waits for a result gets an error for a permanent failure or a mismatch.
    row("divert", |o| o.sink.is_some(), SettingPlaces::AllSources),
    row("on_busy", |o| o.on_busy.is_some(), SettingPlaces::AllSources),
    // A caller that waits for a result gets an error for a permanent failure in any case.
    row(
        "on_permanent_failure",
        |o| o.policy.on_permanent_failure != OnPermanentFailure::Return,
        SettingPlaces::AllSources,
    ),
    // A client that sends no key must not get a success.
    row("on_missing_key", Operation::skips_without_key, SettingPlaces::AllButHttp),
];

impl Place {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Source(name) => name,
            Self::Event => "`.event(..)`",
            #[cfg(feature = "http")]
            Self::Http => "`.http(..)`",
            Self::Run => "`.run(..)`",
        }
    }
}

impl SettingPlaces {
    fn has(&self, place: Place) -> bool {
        match (self, place) {
            (Self::Sources(sources), Place::Source(name)) => sources.contains(&name),
            (Self::AllSources | Self::AllButHttp, Place::Source(_)) => true,
            (Self::Sources(_) | Self::AllSources, _) => false,
            #[cfg(feature = "http")]
            (Self::AllButHttp, Place::Http) => false,
            (Self::AllButHttp, _) => true,
        }
    }
}

impl Operation {
    /// Refuses a setting that has no effect in this place: a filter that never applies, an order
    /// that the source does not keep, a hook that is never called.
    pub(crate) fn fits(&self, place: Place) -> Result<(), ConfigError> {
        let has_no_effect = |row: &&Row| (row.is_set)(self) && !row.places.has(place);
        let Some(row) = ROWS.iter().find(has_no_effect) else { return Ok(()) };
        Err(ConfigError::Misplaced {
            operation: self.shared_name(),
            source_name: place.name(),
            setting: row.setting,
            places: row.places,
        })
    }

    fn skips_without_key(&self) -> bool {
        self.on_missing_key == OnMissingKey::Skip
    }
}

#[cfg(test)]
mod tests {
    use super::ROWS;
    use crate::{error::SettingPlaces, source::ALL};

    #[test]
    fn every_source_name_in_the_table_exists() {
        let names: Vec<_> = ALL.iter().map(|source| source.name()).collect();
        for row in ROWS {
            let SettingPlaces::Sources(sources) = row.places else { continue };
            for source in sources {
                assert!(names.contains(source), "{}: {source}", row.setting);
            }
        }
    }
}
