//! The page of a local run.

use std::time::Instant;

use lambda_idempotency_local::{DeliveryReport, Disposition, InvocationReport};

use super::Arguments;
use super::totals::Totals;
use crate::report::{Effect, List, Run, Shown};

/// Everything that the page shows.
pub(crate) fn run<'r>(
    arguments: &Arguments,
    report: &'r DeliveryReport,
    effects: Vec<Effect>,
    is_whole: bool,
) -> Run<'r> {
    let totals = Totals::of(report);
    let files = arguments.events.iter().chain(&arguments.sqs_body).chain(&arguments.sns_message);
    let files: Vec<String> = files.map(|path| path.display().to_string()).collect();
    let verdict = match (is_whole, report.is_complete()) {
        (false, _) => (false, "The run was stopped: this is what happened until then."),
        (true, true) => (true, "Every record was done in the end."),
        (true, false) => (false, "Some records were dead-lettered or lost."),
    };
    let began = report.invocations.iter().map(|one| one.invocation.began).min();
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
            (totals.lost, "lost"),
        ]
        .map(|(number, meaning)| (number.to_string(), meaning))
        .into(),
        began: began.unwrap_or_else(Instant::now),
        invocations: report.invocations.iter().map(seen).collect(),
        effects,
        signals: Vec::new(),
        lists: vec![deliveries(report), invocations(report)],
        work_of: |_| None,
    }
}

fn seen(report: &InvocationReport) -> Shown<'_> {
    let ends = report
        .records
        .iter()
        .filter_map(|record| Some((record.record.clone()?, end(record.disposition))));
    Shown { invocation: &report.invocation, ends: ends.collect() }
}

/// What the source does with a record, as the tables say it.
pub(crate) fn end(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Done => "done",
        Disposition::Returned => "returned",
        Disposition::DeadLettered => "dead-lettered",
        Disposition::Lost => "lost",
    }
}

fn deliveries(report: &DeliveryReport) -> List {
    let mut rows = Vec::new();
    for (number, invocation) in report.invocations.iter().enumerate() {
        for record in &invocation.records {
            let line = record.line.as_ref();
            let text = |text: Option<&String>| text.cloned().unwrap_or_default();
            rows.push(vec![
                (number + 1).to_string(),
                record.source.to_string(),
                text(record.record.as_ref()),
                record.receive_count.to_string(),
                line.and_then(|line| line.key_hash.clone()).unwrap_or_default(),
                record.outcome.to_string(),
                end(record.disposition).to_owned(),
                text(line.and_then(|line| line.problem.as_ref())),
                text(line.and_then(|line| line.error_message.as_ref())),
            ]);
        }
    }
    List {
        title: "Deliveries",
        header: &["#", "source", "record", "try", "key", "outcome", "then", "problem", "error"],
        rows,
    }
}

fn invocations(report: &DeliveryReport) -> List {
    let row = |(number, report): (usize, &InvocationReport)| {
        let invocation = &report.invocation;
        vec![
            (number + 1).to_string(),
            invocation.pid.to_string(),
            invocation.result.to_string(),
            format!("{:.1}", invocation.duration.as_secs_f64() * 1000.0),
            invocation.dynamodb.requests().to_string(),
            invocation.dynamodb.write_units.to_string(),
            invocation.dynamodb.read_units.to_string(),
        ]
    };
    List {
        title: "Invocations",
        header: &["#", "process", "result", "ms", "DynamoDB requests", "WCU", "RCU"],
        rows: report.invocations.iter().enumerate().map(row).collect(),
    }
}
