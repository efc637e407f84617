//! The report of a local run: tables, totals, and why records were returned or invocations failed.

use std::{collections::BTreeMap, fmt::Write as _, time::Instant};

use lambda_idempotency_local::{
    DeliveryReport, Disposition, InvocationReport, InvocationResult, Outcome, RecordReport, Source,
    Table,
};
use serde_json::Value;

use super::arguments::{Arguments, NO_EVENT};
use crate::{
    report::{List, Run, Story, StoryEffect, StoryInvocation, short},
    terminal::plural,
};

/// Everything that the page shows, of which a terminal gets the tables.
pub(crate) fn run<'r>(
    arguments: &Arguments,
    report: &DeliveryReport,
    story: &'r Story,
    is_whole: bool,
) -> Run<'r> {
    let totals = Totals::of(report);
    let files = arguments.events.iter().chain(&arguments.sqs_body);
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    let verdict = match (is_whole, report.is_complete()) {
        (false, _) => (false, "The run was stopped: this is what happened until then."),
        (true, true) if has_refused(report) => (false, "A request was refused."),
        (true, true) => (true, "Every record was done in the end."),
        (true, false) => (false, "Some records were dead-lettered or answered with an error."),
    };
    Run {
        title: "Local run".to_owned(),
        subtitle: format!("{}, delivered {} time(s)", files.join(", "), arguments.repeat),
        verdict: (verdict.0, verdict.1.to_owned()),
        numbers: [
            (totals.deliveries, "deliveries"),
            (totals.executed, "executed"),
            (totals.answered, "answered without running"),
            (totals.returned, "returned to the source"),
            (totals.dead_lettered, "dead-lettered"),
            (totals.diverted, "diverted"),
            (totals.errors, "answered with an error"),
        ]
        .map(|(number, meaning)| (number.to_string(), meaning))
        .into(),
        story,
        lists: vec![deliveries(report), problems(report), invocations(report)],
    }
}

/// The course of the run, in which the function reported these effects.
pub(crate) fn story(report: &DeliveryReport, effects: Vec<StoryEffect>) -> Story {
    let began = report.invocations.iter().map(|one| one.invocation.began).min();
    let told = |report: &InvocationReport| {
        let records = report.records.iter();
        let messages = records.filter_map(|one| Some((one.record.clone()?, one.disposition)));
        StoryInvocation { invocation: report.invocation.clone(), messages: messages.collect() }
    };
    Story {
        began: began.unwrap_or_else(Instant::now),
        invocations: report.invocations.iter().map(told).collect(),
        effects,
    }
}

pub(crate) fn deliveries(report: &DeliveryReport) -> List {
    let mut rows = Vec::new();
    for (number, invocation) in (1..).zip(&report.invocations) {
        for record in &invocation.records {
            let line = record.line.as_ref();
            let key = line.and_then(|line| line.key_hash.as_deref());
            let ms = line.and_then(|line| line.ms);
            let ms = ms.filter(|ms| record.outcome.ran() || *ms > 0.0);
            let then = Some(record.disposition).filter(|then| *then != Disposition::Done);
            rows.push(vec![
                number.to_string(),
                record.source.to_string(),
                record.record.clone().unwrap_or_else(|| "-".to_owned()),
                record.receive_count.to_string(),
                key.map_or_else(|| "-".to_owned(), short),
                record.outcome.to_string(),
                ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}")),
                then.map(|then| then.to_string()).unwrap_or_default(),
            ]);
        }
    }
    List {
        title: "Deliveries",
        header: &["#", "source", "record", "try", "key", "outcome", "ms", "then"],
        rows,
    }
}

pub(crate) fn invocations(report: &DeliveryReport) -> List {
    let row = |(number, report): (usize, &InvocationReport)| {
        let invocation = &report.invocation;
        let result = match &invocation.result {
            // The message is one of the problems.
            InvocationResult::FunctionError { kind, .. } => format!("error {kind}"),
            result => status(report).unwrap_or_else(|| result.to_string()),
        };
        let usage = &invocation.dynamodb;
        let requests = usage.operations.iter().map(|(name, count)| format!("{name} {count}"));
        vec![
            number.to_string(),
            invocation.pid.to_string(),
            result,
            format!("{:.1}", invocation.duration.as_secs_f64() * 1000.0),
            requests.collect::<Vec<_>>().join(", "),
            usage.write_units.to_string(),
            usage.refused_conditions.to_string(),
            usage.read_units.to_string(),
        ]
    };
    List {
        title: "Invocations",
        header: &["#", "process", "result", "ms", "DynamoDB", "WCU", "conditions\nfailed", "RCU"],
        rows: (1..).zip(&report.invocations).map(row).collect(),
    }
}

fn problems(report: &DeliveryReport) -> List {
    let rows = problem_lines(report).into_iter().map(|line| vec![line]).collect();
    List { title: "Problems", header: &["why records were returned, or invocations failed"], rows }
}

/// The last problem of each record, and the ends of invocations that logged none. It is not that of deliveries which found
/// an earlier one's permanent failure, or its claim.
pub(crate) fn problem_lines(report: &DeliveryReport) -> Vec<String> {
    let mut problems: Vec<(Option<&str>, String)> = Vec::new();
    for invocation in &report.invocations {
        let logged: Vec<_> = invocation.records.iter().filter_map(problem).collect();
        // An error that only sums up the problems of its records is not repeated.
        let failed = if logged.is_empty() { unlogged(invocation) } else { None };
        for (record, text) in logged.into_iter().chain(failed.map(|text| (None, text + "\n"))) {
            let found = [Outcome::OnPermanentFailure, Outcome::Busy];
            let found = found.iter().any(|outcome| text.starts_with(outcome.as_str()));
            if found && problems.iter().any(|(known, _)| record.is_some() && *known == record) {
                continue;
            }
            problems
                .retain(|(known, same)| *same != text && (record.is_none() || *known != record));
            problems.push((record, text));
        }
    }
    problems.into_iter().map(|(_, text)| text).collect()
}

/// How an invocation ended that did not log why.
fn unlogged(report: &InvocationReport) -> Option<String> {
    let is_unknown = |kind: &str| report.source == Source::Invoke && kind.ends_with("UnknownEvent");
    Some(match &report.invocation.result {
        InvocationResult::FunctionError { kind, .. } if is_unknown(kind) => {
            format!("{kind}: the event names no source that this function handles; {NO_EVENT}")
        }
        InvocationResult::FunctionError { kind, message } => format!("{kind}: {message}"),
        InvocationResult::Response(_) => {
            report.records.iter().find(|one| one.outcome == Outcome::Refused)?;
            let problem = refusal(report);
            let part = |name: &str| problem.as_ref()?.get(name)?.as_str();
            let why = part("title").zip(part("detail")).map(|(one, two)| format!("{one}. {two}"));
            format!("refused: {}: {}", status(report)?, why.as_deref().unwrap_or(NOT_REACHED))
        }
        result => result.to_string(),
    })
}

/// `failed, record 1fe70fdb-...: the handler failed`, and what its error says.
fn problem(report: &RecordReport) -> Option<(Option<&str>, String)> {
    let line = report.line.as_ref()?;
    let (outcome, problem) = (&report.outcome, line.problem.as_deref()?);
    let record = report.record.as_deref();
    let problem = if problem == "TooLarge" { TOO_LARGE } else { problem };
    let mut text = format!("{outcome}, record {}: {problem}\n", record.unwrap_or("-"));
    let not_diverted = line.not_diverted.as_ref().map(|why| format!("not diverted: {why}"));
    let no_table = problem.contains("does not exist in region").then(|| NO_TABLE.to_owned());
    for more in [line.error_message.clone(), not_diverted, no_table].into_iter().flatten() {
        text.push_str(&format!("    {more}\n"));
    }
    Some((record, text))
}

const TOO_LARGE: &str = "its result is larger than a record can be, and is not kept; `Results::offload_above` (crate \
                         lambda-idempotency-results) keeps it elsewhere";
const NO_TABLE: &str = "`--table NAME:id:expiration` makes a table here";
const NOT_REACHED: &str = "the function logged nothing of the request, which did not reach the layer; compare its method \
                           and path (`event http --path`) with the function's routes";

/// The beginning of the `type` of a problem that the library made.
const LIBRARY: &str = "https://docs.rs/lambda-idempotency/";

/// The status of an answer to a request of HTTP.
fn status(report: &InvocationReport) -> Option<String> {
    let status = response(report)?.get("statusCode").and_then(Value::as_u64);
    Some(status.unwrap_or(200).to_string())
}

/// Whether a request was refused that the client does not send again: by the library, or before it reached the layer.
pub(super) fn has_refused(report: &DeliveryReport) -> bool {
    report.invocations.iter().any(|report| {
        let mut done = report.records.iter().filter(|one| one.disposition == Disposition::Done);
        done.any(|one| one.outcome == Outcome::Refused || refusal(report).is_some())
    })
}

fn response(report: &InvocationReport) -> Option<&Value> {
    match &report.invocation.result {
        InvocationResult::Response(response) if report.source == Source::Http => Some(response),
        _ => None,
    }
}

/// The problem in the body, if the library made it.
fn refusal(report: &InvocationReport) -> Option<Value> {
    let body: Value = serde_json::from_str(response(report)?.get("body")?.as_str()?).ok()?;
    let kind = body.get("type")?.as_str()?;
    kind.starts_with(LIBRARY).then_some(body)
}

pub(crate) struct Rows {
    pub(crate) table: Table,
    pub(crate) items: Vec<Value>,
}

pub(crate) struct Totals {
    pub(crate) deliveries: usize,
    pub(crate) executed: usize,
    pub(crate) answered: usize,
    pub(crate) returned: usize,
    pub(crate) dead_lettered: usize,
    pub(crate) diverted: usize,
    pub(crate) errors: usize,
    /// Records that are done with another outcome, by outcome: `coalesced`, ...
    pub(crate) other: BTreeMap<String, usize>,
}

impl Totals {
    pub(crate) fn of(report: &DeliveryReport) -> Self {
        let count = |counts: fn(&Outcome) -> bool| {
            report.records().filter(|record| counts(&record.outcome)).count()
        };
        let executed: fn(&Outcome) -> bool = |outcome| {
            matches!(outcome, Outcome::Executed | Outcome::Unprotected | Outcome::CompletionLost)
        };
        let mut other = BTreeMap::new();
        for record in report.records().filter(|record| record.disposition == Disposition::Done) {
            if !executed(&record.outcome) && !record.outcome.answered_without_running() {
                *other.entry(record.outcome.to_string()).or_default() += 1;
            }
        }
        Self {
            deliveries: report.records().count(),
            executed: count(executed),
            other,
            answered: count(Outcome::answered_without_running),
            returned: report.dispositions(Disposition::Returned),
            dead_lettered: report.dead_letters.len(),
            diverted: report.dispositions(Disposition::Diverted),
            errors: report.dispositions(Disposition::Error),
        }
    }
}

pub(crate) fn summary(report: &DeliveryReport, tables: &[Rows]) -> String {
    let totals = Totals::of(report);
    let mut text = format!(
        "{}: {} executed, {} answered without running, {} returned to the source, {} dead-lettered",
        plural(totals.deliveries, "delivery", "deliveries"),
        totals.executed,
        totals.answered,
        totals.returned,
        totals.dead_lettered
    );
    for (count, what) in [(totals.diverted, "diverted"), (totals.errors, "answered with an error")]
    {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    for (outcome, count) in &totals.other {
        let _ = write!(text, ", {count} {outcome}");
    }
    for rows in tables {
        let _ = write!(text, "\n{}", contents(rows));
    }
    text
}

/// How many rows a table has, and their keys if these are short enough.
fn contents(Rows { table, items }: &Rows) -> String {
    let mut text = format!("table {}: {}", table.name(), plural(items.len(), "row", "rows"));
    let key = |item: &Value| Some(item.get(table.key())?.get("S")?.as_str()?.to_owned());
    let mut names: Vec<String> = items.iter().filter_map(key).collect();
    names.sort_unstable();
    // Hashes, as in the idempotency table, do not help the reader.
    if !names.is_empty() && names.len() <= 20 && names.iter().all(|name| name.len() <= 40) {
        let _ = write!(text, " ({})", names.join(", "));
    }
    text
}

/// Whether the function answered, but logged nothing of any record. A request that is refused is not logged.
pub(crate) fn is_silent(report: &DeliveryReport) -> bool {
    report.records().all(|record| record.line.is_none()) && report.count(&Outcome::Acknowledged) > 0
}
