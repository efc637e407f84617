//! The report of a local run: tables, totals, and why records were returned or invocations failed.

use std::{collections::BTreeMap, fmt::Write as _, time::Instant};

use lambda_idempotency_local::{
    DeliveryReport, Disposition, InvocationReport, InvocationResult, Outcome, RecordReport, Source,
    Table,
};
use serde_json::Value;

use super::arguments::Arguments;
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
        (true, true) if has_refused(report) => (false, "The library refused a request."),
        (true, true) => (true, "Every record was done in the end."),
        (true, false) => (false, "Some records were dead-lettered or lost."),
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
            (totals.lost, "lost"),
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
            result => answer(report).unwrap_or_else(|| result.to_string()),
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
        header: &["#", "process", "result", "ms", "DynamoDB requests", "WCU", "refused", "RCU"],
        rows: (1..).zip(&report.invocations).map(row).collect(),
    }
}

fn problems(report: &DeliveryReport) -> List {
    let rows = problem_lines(report).into_iter().map(|line| vec![line]).collect();
    List { title: "Problems", header: &["why records were returned, or invocations failed"], rows }
}

/// The last problem of each record, and the errors of invocations that logged none. Of a permanent failure it is the
/// handler's, and not that of deliveries which found it recorded.
pub(crate) fn problem_lines(report: &DeliveryReport) -> Vec<String> {
    let mut problems: Vec<(Option<&str>, String)> = Vec::new();
    for invocation in &report.invocations {
        let logged: Vec<_> = invocation.records.iter().filter_map(problem).collect();
        let failed = match &invocation.invocation.result {
            // An error that only sums up the problems of its records is not repeated.
            InvocationResult::FunctionError { kind, message } if logged.is_empty() => {
                Some((None, format!("{kind}: {message}\n")))
            }
            _ => None,
        };
        for (record, text) in logged.into_iter().chain(failed) {
            let found = text.starts_with(Outcome::OnPermanentFailure.as_str());
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

/// `failed, record 1fe70fdb-...: the handler failed`, and what its error says.
fn problem(report: &RecordReport) -> Option<(Option<&str>, String)> {
    let line = report.line.as_ref()?;
    let (outcome, problem) = (&report.outcome, line.problem.as_ref()?);
    let record = report.record.as_deref();
    let mut text = format!("{outcome}, record {}: {problem}\n", record.unwrap_or("-"));
    if let Some(message) = &line.error_message {
        text.push_str(&format!("    {message}\n"));
    }
    Some((record, text))
}

/// The beginning of the `type` of a problem that the library made.
const LIBRARY: &str = "https://docs.rs/lambda-idempotency/";

/// `200`, or `422 The key was used with another request`; `None` if this is not an answer to a request.
pub(super) fn answer(report: &InvocationReport) -> Option<String> {
    let response = response(report)?;
    let status = response.get("statusCode").and_then(Value::as_u64).unwrap_or(200);
    match refusal(response) {
        Some(problem) => {
            let title = problem.get("title").and_then(Value::as_str).unwrap_or_default();
            Some(format!("{status} {title}"))
        }
        None => Some(status.to_string()),
    }
}

/// Whether the refusal is final: the client does not send the request again.
pub(super) fn has_refused(report: &DeliveryReport) -> bool {
    report.invocations.iter().any(|report| {
        let is_done = report.records.iter().any(|one| one.disposition == Disposition::Done);
        is_done && response(report).is_some_and(|response| refusal(response).is_some())
    })
}

fn response(report: &InvocationReport) -> Option<&Value> {
    match &report.invocation.result {
        InvocationResult::Response(response) if report.source == Source::Http => Some(response),
        _ => None,
    }
}

/// The problem in the body, if the library made it.
fn refusal(response: &Value) -> Option<Value> {
    let body: Value = serde_json::from_str(response.get("body")?.as_str()?).ok()?;
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
    pub(crate) lost: usize,
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
            lost: report.dispositions(Disposition::Lost),
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
    for (count, what) in [(totals.diverted, "diverted"), (totals.lost, "lost")] {
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
    let is_refused = |report: &InvocationReport| {
        let status = response(report).and_then(|response| response.get("statusCode")?.as_u64());
        status.is_some_and(|status| status >= 400)
    };
    let answered = report.invocations.iter().filter(|report| !is_refused(report));
    report.records().all(|record| record.line.is_none())
        && answered
            .flat_map(|report| &report.records)
            .any(|record| record.outcome == Outcome::Acknowledged)
}
