//! The response to a source: which records have to be delivered again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>,
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html>

use std::collections::HashSet;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{
    record::{Item, Record},
    sink::RecordEnd,
};
use crate::error::{InvocationError, NotJson};

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

/// Names every record that is returned or was not started, once.
///
/// Streams and partitions need only the first: they continue from the lowest that is named. Sources
/// that acknowledge each record separately (queues, pipes, Kafka's share groups) treat a record
/// that is not named as done. An identifier is shorter than its record, so the response is smaller
/// than the event, and within Lambda's limit of 6 MB.
///
/// A record without an identifier would count as done. If such a record has to be returned, the
/// invocation fails.
pub(super) fn partial(
    source_name: &'static str,
    state: Option<&RawValue>,
    records: &[Record<'_>],
    outcomes: &[RecordEnd],
) -> Result<Box<RawValue>, InvocationError> {
    let mut failures = Vec::new();
    let mut named = HashSet::new();
    for (record, outcome) in records.iter().zip(outcomes) {
        if outcome.is_acknowledged() {
            continue;
        }
        let Some(item) = &record.item else {
            return all_or_error(source_name, records, outcomes);
        };
        // Several records in one envelope have one identifier.
        if named.insert(item) {
            failures.push(Failure { item });
        }
    }
    to_raw_value(&Response { state, failures })
        .map_err(|_| InvocationError::Json(NotJson::Response))
}

/// The response to a source without partial responses, or that is not to get one: `null` if all records are
/// acknowledged, else an error.
pub(crate) fn all_or_error(
    source_name: &'static str,
    records: &[Record<'_>],
    outcomes: &[RecordEnd],
) -> Result<Box<RawValue>, InvocationError> {
    /// How many problems the error contains; the log has the others.
    const SHOWN: usize = 3;
    let problem = |(at, (record, outcome)): (usize, (&Record<'_>, &RecordEnd))| {
        let problem = outcome.problem()?;
        // A record without an id is named by its position.
        let position = if record.id.id.is_empty() {
            format!("no. {} of the batch", at + 1)
        } else {
            String::new()
        };
        Some(format!("{}{position}: {problem}", record.id))
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
