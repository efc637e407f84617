//! The report of a run under faults.

use lambda_idempotency_chaos::{Offence, Report};

use crate::report::{List, Summary};

/// Everything that the report shows.
pub(crate) fn summary(report: &Report) -> Summary<'_> {
    let faults: Vec<_> = report.faults.iter().map(|kind| kind.as_str()).collect();
    let findings = &report.findings;
    let violations: u64 = findings.violations.iter().map(|violation| violation.times).sum();
    Summary {
        subtitle: format!(
            "seed {}, schedule {}, {} processes, source {}, {:.1} s, faults: {}",
            report.seed,
            report.schedule,
            report.processes,
            report.source,
            report.seconds,
            faults.join(", ")
        ),
        numbers: vec![
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
            (findings.doubled.values().sum(), "effects again, with a cause"),
            (findings.stale, "of these, a fence would refuse"),
            (findings.count(Offence::Lost), "lost"),
            (findings.count(Offence::Stuck), "stuck"),
            (findings.count(Offence::Doubled), "doubled without a cause"),
            (violations, "violations, all kinds"),
        ],
        findings,
        lists: vec![
            List::counts("Faults injected", &["fault", "times"], &report.injected),
            List::counts("Deliveries by outcome", &["outcome", "deliveries"], &report.outcomes),
            List::counts(
                "Effects that happened again",
                &["observed cause", "times"],
                &findings.doubled,
            ),
        ],
        verdict: verdict(report, violations),
    }
}

fn verdict(report: &Report, violations: u64) -> String {
    if report.given_up {
        return "UNFINISHED: no message was settled for a long time, so the run was given up. A machine that has no \
                processor time for the function does that: use a longer timeout, or more patience."
            .to_owned();
    }
    match violations {
        0 => "No message was lost or stuck, and every effect that happened again has a cause that was observed.".to_owned(),
        count => format!("{count} violation(s) of what the library promises: see above."),
    }
}
