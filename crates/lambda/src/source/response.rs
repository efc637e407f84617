//! What a source is told: which records have to come again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>,
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html>

use std::{cmp::Ordering, collections::HashMap};

use lambda_idempotency_core::outcome::Outcome;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Record;
use crate::error::InvocationError;

/// What a record is called in a partial batch response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub(crate) enum Item {
    /// By its own id; it comes again alone.
    Message(String),
    /// By its place in a shard; it comes again with all that is behind it.
    Sequence(String),
    /// By its place in a partition; it comes again with all that is behind it there.
    Offset {
        /// Topic and partition, as the event writes them: `orders-0`.
        partition: String,
        /// The place.
        offset: u64,
    },
}

/// The records that come again together, from the lowest of them on.
#[derive(PartialEq, Eq, Hash)]
enum Lane<'a> {
    Message(&'a str),
    Shard,
    Partition(&'a str),
}

impl Item {
    fn lane(&self) -> Lane<'_> {
        match self {
            Self::Message(id) => Lane::Message(id),
            Self::Sequence(_) => Lane::Shard,
            Self::Offset { partition, .. } => Lane::Partition(partition),
        }
    }

    /// Whether it is surely not before `other`, of the same lane.
    fn is_behind(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Sequence(this), Self::Sequence(other)) => {
                compare(this, other).is_some_and(Ordering::is_ge)
            }
            (Self::Offset { offset: this, .. }, Self::Offset { offset: other, .. }) => {
                this >= other
            }
            _ => true,
        }
    }
}

/// Compares sequence numbers, which are longer than any integer type.
fn compare(this: &str, other: &str) -> Option<Ordering> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(this) || !digits(other) {
        return None;
    }
    let [this, other] = [this, other].map(|text| text.trim_start_matches('0'));
    Some(this.len().cmp(&other.len()).then_with(|| this.cmp(other)))
}

#[derive(Serialize)]
struct Response<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a RawValue>,
    #[serde(rename = "batchItemFailures")]
    failures: Vec<Failure<'a>>,
}

#[derive(Serialize)]
struct Failure<'a> {
    #[serde(rename = "itemIdentifier")]
    item: &'a Item,
}

/// Names each message that goes back, and of each shard or partition the checkpoint: the first
/// record of it that goes back, behind which everything comes again.
///
/// The event's order counts. Should a record further back in it have a lower number, it is named as
/// well: the source takes the lowest, and nothing is lost whichever it goes by.
///
/// A record that cannot be named would be taken for done. If one goes back, the invocation fails.
pub(super) fn partial(
    source_name: &'static str,
    state: Option<&RawValue>,
    records: &[Record<'_>],
    outcomes: &[Outcome],
) -> Result<Box<RawValue>, InvocationError> {
    let mut failures = Vec::new();
    let mut lowest: HashMap<Lane<'_>, &Item> = HashMap::new();
    for (record, outcome) in records.iter().zip(outcomes) {
        if outcome.is_acknowledged() {
            continue;
        }
        let Some(item) = &record.item else {
            return all_or_error(source_name, records, outcomes);
        };
        if lowest.get(&item.lane()).is_some_and(|lowest| item.is_behind(lowest)) {
            continue;
        }
        lowest.insert(item.lane(), item);
        failures.push(Failure { item });
    }
    to_raw_value(&Response { state, failures })
        .map_err(|_| InvocationError::Json { what: "the partial batch response" })
}

/// Tells a source without partial responses: nothing if all is acknowledged, else an error.
pub(super) fn all_or_error(
    source_name: &'static str,
    records: &[Record<'_>],
    outcomes: &[Outcome],
) -> Result<Box<RawValue>, InvocationError> {
    /// Names are enough to look the rest up in the log.
    const SHOWN: usize = 3;
    let problem = |(at, (record, outcome)): (usize, (&Record<'_>, &Outcome))| {
        let problem = outcome.problem()?;
        // Without an id, its place has to do.
        let place = if record.id.id.is_empty() {
            format!("no. {} of the batch", at + 1)
        } else {
            String::new()
        };
        Some(format!("{}{place}: {problem}", record.id))
    };
    let problems: Vec<_> = records.iter().zip(outcomes).enumerate().filter_map(problem).collect();
    if problems.is_empty() {
        return Ok(RawValue::NULL.to_owned());
    }
    let mut shown = problems.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    if problems.len() > SHOWN {
        shown.push_str("; ...");
    }
    let (failed, total) = (problems.len(), outcomes.len());
    Err(InvocationError::Records { source_name, failed, total, problems: shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_are_compared_as_numbers() {
        for (lower, higher) in [
            ("9", "10"),
            ("009", "10"),
            (
                "49590338271490256608559692538361571095921575989136588898",
                "49590338271490256608559692540925702759324208523137515618",
            ),
        ] {
            assert_eq!(compare(lower, higher), Some(Ordering::Less));
            assert_eq!(compare(higher, lower), Some(Ordering::Greater));
        }
        assert_eq!(compare("010", "10"), Some(Ordering::Equal));
        assert_eq!(compare("", "1"), None);
        assert_eq!(compare("a", "1"), None);
    }
}
