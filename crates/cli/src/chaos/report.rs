//! The report of a run under faults.

use lambda_idempotency_chaos::{Mode, Offence, Report, Story};

use crate::report::{List, Run};

/// Everything that the report shows.
pub(crate) fn run<'r>(report: &'r Report, story: &'r Story) -> Run<'r> {
    let faults: Vec<_> = report.faults.iter().map(|kind| kind.as_str()).collect();
    let findings = &report.findings;
    let violations: u64 = findings.violations.iter().map(|violation| violation.times).sum();
    Run {
        title: "Run under faults".to_owned(),
        subtitle: format!(
            "seed {}, schedule {}, {} processes, source {}, {:.1} s, faults: {}",
            report.seed,
            report.schedule,
            report.processes,
            report.source,
            report.seconds,
            faults.join(", ")
        ),
        verdict: (violations == 0, verdict(report, violations)),
        numbers: numbers(report, violations),
        story,
        lists: vec![
            List::violations(findings),
            List::counts("Faults injected", &["fault", "times"], &report.injected),
            List::counts("Deliveries by outcome", &["outcome", "deliveries"], &report.outcomes),
            // In a transaction, no cause excuses a second effect: there is none to show.
            List::counts("Effects that happened again", CAUSE, &findings.doubled),
            List::counts("Messages that were sent again", CAUSE, &findings.copies),
        ],
        work_of: Story::work_of,
    }
}

const CAUSE: &[&str] = &["observed cause", "times"];

fn numbers(report: &Report, violations: u64) -> Vec<(String, &'static str)> {
    let findings = &report.findings;
    let mut numbers = vec![
        (report.messages as u64, "messages"),
        (report.probes as u64, "sent once more, for keys held at the end"),
        (report.keys as u64, "pieces of work"),
        (report.deliveries, "deliveries"),
        (report.returned, "returned to the source"),
        (report.acknowledged as u64, "messages acknowledged"),
        (report.dead_lettered as u64, "messages dead-lettered, as scripted"),
        (report.invocations as u64, "invocations"),
        (report.requests, "store requests"),
        (report.injected.values().sum(), "faults injected"),
        (report.executions as u64, "handlers started"),
        (findings.effects, "effects"),
    ];
    if report.mode.commits() {
        numbers.push((findings.not_committed, "collected, and not committed"));
        numbers.push((findings.ran_again, "ran again, and applied nothing"));
    } else {
        numbers.push((findings.doubled.values().sum(), "effects again, with a cause"));
        numbers.push((findings.stale, "of these, a fence would refuse"));
        numbers.push((findings.answered_steps, "executions answered from a recorded step"));
    }
    if report.published > 0 {
        numbers.extend([
            (report.published as u64, "messages published by orders"),
            (findings.sent, "of these, sent"),
            (report.relayed as u64, "of these, sent by the relay"),
            (findings.copies.values().sum(), "sent again with the same id, with a cause"),
            (report.received as u64, "received by the consumer, by their ids"),
        ]);
    }
    numbers.extend([
        (findings.count(Offence::Lost), "lost"),
        (findings.count(Offence::Stuck), "stuck"),
        (findings.count(Offence::Doubled), "doubled without a cause"),
        (violations, "violations, all kinds"),
    ]);
    numbers.into_iter().map(|(number, meaning)| (number.to_string(), meaning)).collect()
}

fn verdict(report: &Report, violations: u64) -> String {
    if report.given_up {
        return "UNFINISHED: no message was settled for a long time, so the run was given up. A machine that has no \
                processor time for the function does that: use a longer timeout, or more patience."
            .to_owned();
    }
    match (violations, report.mode) {
        (0, Mode::Transaction) => "No message was lost or stuck, and no effect happened again.".to_owned(),
        (0, _) => "No message was lost or stuck, and every effect that happened again has a cause that was observed."
            .to_owned(),
        (count, _) => format!("{count} violation(s) of what the library promises: see the list."),
    }
}
