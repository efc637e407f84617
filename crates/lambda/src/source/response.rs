//! What a source is told: which records have to come again.
//!
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>,
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-kinesis-batchfailurereporting.html>

use std::collections::HashSet;

use lambda_idempotency_core::outcome::Outcome;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::record::{Item, Record};
use crate::error::InvocationError;

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

/// Names every record that goes back or was not started, once.
///
/// Streams and partitions need only the first: they go on from the lowest that is named. Whoever
/// acknowledges each record by itself (queues, pipes, Kafka's share groups) takes a record that is not
/// named for done. A name takes fewer bytes than its record did, so the response is smaller than the
/// event, and within Lambda's limit of 6 MB.
///
/// A record that cannot be named would be taken for done. If one goes back, the invocation fails.
pub(super) fn partial(
    source_name: &'static str,
    state: Option<&RawValue>,
    records: &[Record<'_>],
    outcomes: &[Outcome],
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
        // Several records in one envelope have one name.
        if named.insert(item) {
            failures.push(Failure { item });
        }
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
