//! The report of a local run.

use std::time::Instant;

use lambda_idempotency_local::{DeliveryReport, Disposition, InvocationReport, InvocationResult};

use super::totals::Totals;
use super::{Arguments, http, problems};
use crate::report::{List, Run, Story, StoryEffect, StoryInvocation, short};

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
        (true, true) if http::has_refused(report) => (false, "The library refused a request."),
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
        lists: vec![deliveries(report), problems(report), invocations(report)],
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
            result => http::answer(report).unwrap_or_else(|| result.to_string()),
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
    let rows = problems::lines(report).into_iter().map(|line| vec![line]).collect();
    List { title: "Problems", header: &["why records were returned, or invocations failed"], rows }
}
