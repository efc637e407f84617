//! The report of a delivery, record by record.

use std::collections::VecDeque;

use lambda_idempotency_engine::call::RecordId;
use serde::Serialize;
use serde_json::Value;

use super::event::Source;
use crate::function::{Invocation, InvocationResult, Outcome, RecordLine};

/// Everything that happened until each record was done, dead-lettered or lost.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct DeliveryReport {
    /// The invocations, in the order in which they ended.
    pub invocations: Vec<InvocationReport>,
    /// The records that ended in a dead-letter queue.
    pub dead_letters: Vec<DeadLetter>,
}

impl DeliveryReport {
    /// All deliveries of all records, in order.
    pub fn records(&self) -> impl Iterator<Item = &RecordReport> {
        self.invocations.iter().flat_map(|invocation| &invocation.records)
    }

    /// How many deliveries ended with this outcome.
    pub fn count(&self, outcome: &Outcome) -> usize {
        self.records().filter(|record| record.outcome == *outcome).count()
    }

    /// How many deliveries had this disposition.
    pub fn dispositions(&self, disposition: Disposition) -> usize {
        self.records().filter(|record| record.disposition == disposition).count()
    }

    /// Whether every record was done in the end.
    pub fn is_complete(&self) -> bool {
        self.dead_letters.is_empty() && self.dispositions(Disposition::Error) == 0
    }
}

/// One invocation, and its records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InvocationReport {
    /// The source that caused it.
    pub source: Source,
    /// Its result.
    pub invocation: Invocation,
    /// The records that it was given.
    pub records: Vec<RecordReport>,
}

/// One delivery of one record.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RecordReport {
    /// Where it came from.
    pub source: Source,
    /// Its id, if it has one.
    pub record: Option<String>,
    /// The number of this delivery, from 1.
    pub receive_count: u32,
    /// The outcome that the function logged; derived from the invocation's result if it logged none.
    pub outcome: Outcome,
    /// The line that the function logged for it, if it logged one.
    pub line: Option<RecordLine>,
    /// The action of its source.
    pub disposition: Disposition,
}

/// The action of a source on a record after a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// Acknowledged: it will not be delivered again.
    Done,
    /// Acknowledged, because the user's sink has it.
    Diverted,
    /// It was returned and will be delivered again.
    Returned,
    /// It failed too often.
    DeadLettered,
    /// It failed, and its caller, who got the error, does not try again.
    Error,
}

impl std::fmt::Display for Disposition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Done => "done",
            Self::Diverted => "diverted",
            Self::Returned => "returned",
            Self::DeadLettered => "dead-lettered",
            Self::Error => "error",
        })
    }
}

/// A record that failed too often.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Where it came from.
    pub source: Source,
    /// Its id, if it has one.
    pub record: Option<String>,
    /// How often it was delivered.
    pub receive_count: u32,
    /// The message, or the whole event of an asynchronous invocation.
    pub event: Value,
}

/// A record as it was delivered: id, receive count, disposition.
pub(crate) type Delivered = (Option<String>, u32, Disposition);

/// Combines the delivered records with the lines that the function logged.
///
/// Lines are matched by record id, in order: a batch may hold the same message twice. Records without an id get the
/// remaining lines, and lines of records that were not delivered are kept, too.
///
/// A function logs only a hash (`#3f2a..`) of an id that an application chose. A hash that was made with a secret cannot
/// be computed here, so such lines are matched, in order, with the records that have no other line.
pub(crate) fn report(
    source: Source,
    delivered: Vec<Delivered>,
    invocation: Invocation,
) -> InvocationReport {
    let mut lines: VecDeque<RecordLine> = invocation.records.clone().into();
    let mut matched: Vec<Option<RecordLine>> = delivered
        .iter()
        .map(|(id, ..)| {
            let at =
                lines.iter().position(|line| id.as_ref().is_some_and(|id| is_called(id, line)))?;
            lines.remove(at)
        })
        .collect();
    for (line, (id, ..)) in matched.iter_mut().zip(&delivered).filter(|(line, _)| line.is_none()) {
        let takes = |line: &RecordLine| id.is_none() || line.record.starts_with('#');
        *line = lines.iter().position(takes).and_then(|at| lines.remove(at));
    }
    let count = delivered.iter().map(|(_, count, _)| *count).max().unwrap_or(1);
    let is_done = invocation.result.is_response();
    let disposition = if is_done { Disposition::Done } else { Disposition::Error };
    let extra =
        lines.into_iter().map(|line| ((Some(line.record.clone()), count, disposition), Some(line)));
    let mut rows: Vec<(Delivered, Option<RecordLine>)> =
        delivered.into_iter().zip(matched).chain(extra).collect();
    if rows.is_empty() {
        rows.push(((None, 1, disposition), None));
    }
    let is_http = source == Source::Http;
    let records =
        rows.into_iter().map(|((record, receive_count, disposition), line)| RecordReport {
            source,
            record: record.or_else(|| Some(line.as_ref().filter(|_| is_http)?.record.clone())),
            receive_count,
            outcome: line.as_ref().map_or_else(
                || derived(source, &invocation.result, disposition),
                |line| line.outcome.clone(),
            ),
            disposition: match &line {
                Some(line) if line.is_diverted && disposition == Disposition::Done => {
                    Disposition::Diverted
                }
                _ => disposition,
            },
            line,
        });
    let records = records.collect();
    InvocationReport { source, invocation, records }
}

/// Whether a line is about the record with this id.
fn is_called(id: &str, line: &RecordLine) -> bool {
    /// The sources with ids that are not made by AWS.
    const HIDING: [&str; 4] = ["activemq", "rabbitmq", "eventbridge", "scheduler"];
    let hidden = || HIDING.into_iter().find(|source| *source == line.source);
    *id == line.record
        || (line.record.starts_with('#')
            && hidden()
                .is_some_and(|source| RecordId::new(source, id).hidden().label() == line.record))
}

/// The outcome of a record of which the function logged nothing.
fn derived(source: Source, result: &InvocationResult, disposition: Disposition) -> Outcome {
    let status = |response: &Value| response.get("statusCode").and_then(Value::as_u64);
    let refuses = matches!(result, InvocationResult::Response(it) if status(it) >= Some(400));
    match (result, disposition) {
        _ if refuses && source == Source::Http => Outcome::Refused,
        (InvocationResult::TimedOut, _) => Outcome::TimedOut,
        (InvocationResult::Exited { .. }, _) => Outcome::Crashed,
        (_, Disposition::Done) => Outcome::Acknowledged,
        _ => Outcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Usage;
    use std::time::Duration;

    fn line(record: &str, outcome: &str) -> RecordLine {
        let text =
            format!(r#"{{"message":"record done","record":"{record}","outcome":"{outcome}"}}"#);
        RecordLine::parse(&text).unwrap()
    }

    fn outcomes(report: &InvocationReport) -> Vec<&str> {
        report.records.iter().map(|record| record.outcome.as_str()).collect()
    }

    /// Reports an invocation that got records with these ids, and logged these lines.
    fn reported(
        source: Source,
        ids: &[&str],
        result: InvocationResult,
        records: Vec<RecordLine>,
    ) -> InvocationReport {
        let is_answer = matches!(result, InvocationResult::Response(_));
        let disposition = if is_answer { Disposition::Done } else { Disposition::Returned };
        let delivered = ids.iter().map(|id| (Some((*id).to_owned()), 1, disposition)).collect();
        let (request_id, dynamodb) = ("r".to_owned(), Usage::default());
        let (began, duration) = (std::time::Instant::now(), Duration::ZERO);
        let (pid, requests) = (1, Vec::new());
        let invocation =
            Invocation { request_id, pid, began, result, duration, records, dynamodb, requests };
        report(source, delivered, invocation)
    }

    #[test]
    fn lines_go_to_their_records_and_others_get_the_outcome_of_the_invocation() {
        let answered = || InvocationResult::Response(Value::Null);
        let crashed = InvocationResult::Exited { code: None, signal: Some(9) };
        let hidden = |id: &str, outcome: &str| {
            let id = RecordId::new("activemq", id).hidden();
            RecordLine { source: "activemq".to_owned(), ..line(id.label(), outcome) }
        };
        let lines = vec![line("b", "failed"), line("a", "executed"), line("a", "coalesced")];
        let report = reported(Source::Sqs, &["a", "b", "a", "c"], answered(), lines);
        assert_eq!(outcomes(&report), ["executed", "failed", "coalesced", "acknowledged"]);
        for lines in [
            vec![hidden("ID:2", "failed"), hidden("ID:1", "executed")],
            // Ids that a secret has hidden are those of the records in order.
            vec![line("#3f2a9c11d0be", "executed"), line("#0c11d0be3f2a", "failed")],
        ] {
            let report = reported(Source::ActiveMq, &["ID:1", "ID:2", "ID:3"], answered(), lines);
            assert_eq!(outcomes(&report), ["executed", "failed", "acknowledged"]);
            assert_eq!(report.records[1].record.as_deref(), Some("ID:2"));
        }
        let diverted = RecordLine { is_diverted: true, ..line("b", "failed") };
        let lines = vec![line("a", "executed"), diverted];
        let report = reported(Source::Sqs, &["a", "b"], answered(), lines.clone());
        let dispositions = [0, 1].map(|at| report.records[at].disposition);
        assert_eq!(dispositions, [Disposition::Done, Disposition::Diverted]);
        let report = reported(Source::Sqs, &["b"], InvocationResult::TimedOut, lines);
        assert_eq!(report.records[0].disposition, Disposition::Returned, "it comes again");
        let report = reported(Source::Sqs, &["a", "b"], crashed, vec![line("a", "executed")]);
        assert_eq!(outcomes(&report), ["executed", "crashed"]);
        let direct = reported(Source::Invoke, &[], InvocationResult::TimedOut, Vec::new());
        assert_eq!(outcomes(&direct), ["timed_out"], "it has one row at least");
        assert_eq!(direct.records[0].disposition, Disposition::Error);
    }
}
