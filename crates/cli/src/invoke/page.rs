//! The page of a local run.

use std::time::Instant;

use lambda_idempotency_chaos::{Story, StoryEffect, StoryInvocation};
use lambda_idempotency_local::{DeliveryReport, InvocationReport};

use super::Arguments;
use super::totals::Totals;
use crate::report::{List, Run};

/// Everything that the page shows.
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
            (totals.lost, "lost"),
        ]
        .map(|(number, meaning)| (number.to_string(), meaning))
        .into(),
        story,
        lists: vec![deliveries(report), invocations(report)],
        work_of: |_| None,
    }
}

/// What happened in the run, of which the function reported these effects.
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
        faults: Vec::new(),
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
                record.disposition.to_string(),
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
