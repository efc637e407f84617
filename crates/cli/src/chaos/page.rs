//! The page of a run under faults.

use std::{collections::BTreeMap, fmt::Display};

use lambda_idempotency_chaos::{Mode, Report, Story};

use crate::report::{List, Run};

/// Everything that the page shows.
pub(crate) fn run<'r>(report: &'r Report, story: &'r Story) -> Run<'r> {
    let faults: Vec<_> = report.faults.iter().map(|kind| kind.as_str()).collect();
    let doubled: u64 = report.findings.doubled.values().sum();
    let violations: u64 = report.findings.violations.iter().map(|violation| violation.times).sum();
    let commits = report.mode == Mode::Transaction;
    Run {
        title: "Run under faults".to_owned(),
        subtitle: format!(
            "seed {}, schedule {}, {} processes, mode {}, source {}, faults: {}",
            report.seed,
            report.schedule,
            report.processes,
            report.mode,
            report.source,
            faults.join(", ")
        ),
        verdict: (violations == 0, verdict(report.mode, violations)),
        numbers: vec![
            (report.messages.to_string(), "messages"),
            (report.keys.to_string(), "pieces of work"),
            (report.deliveries.to_string(), "deliveries"),
            (report.injected.values().sum::<u64>().to_string(), "faults injected"),
            (report.findings.effects.to_string(), "effects"),
            match commits {
                true => (report.findings.not_committed.to_string(), "collected, and not committed"),
                false => (doubled.to_string(), "effects again, with a cause"),
            },
            (violations.to_string(), "violations"),
        ],
        story,
        lists: vec![
            violated(report),
            counts("Faults injected", &["fault", "times"], &report.injected),
            counts("Deliveries by outcome", &["outcome", "deliveries"], &report.outcomes),
            // In a transaction, no cause excuses a second effect: there is none to show.
            counts(
                "Effects that happened again",
                &["observed cause", "times"],
                &report.findings.doubled,
            ),
        ],
        work_of: Story::work_of,
    }
}

fn verdict(mode: Mode, violations: u64) -> String {
    match (violations, mode) {
        (0, Mode::Transaction) => "No message was lost or stuck, and no effect happened again.".to_owned(),
        (0, _) => "No message was lost or stuck, and every effect that happened again has a cause that was observed."
            .to_owned(),
        (count, _) => format!("{count} violation(s) of what the library promises: see below."),
    }
}

fn violated(report: &Report) -> List {
    let row = |violation: &lambda_idempotency_chaos::Violation| {
        vec![
            format!("{:?}", violation.offence),
            violation.times.to_string(),
            violation.what.clone(),
            violation.trace.join("\n"),
        ]
    };
    List {
        title: "Violations",
        header: &["kind", "times", "what", "executions"],
        rows: report.findings.violations.iter().map(row).collect(),
    }
}

fn counts<K: Display>(
    title: &'static str,
    header: &'static [&'static str],
    counts: &BTreeMap<K, u64>,
) -> List {
    let rows = counts.iter().map(|(name, count)| vec![name.to_string(), count.to_string()]);
    List { title, header, rows: rows.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_transactions_speaks_of_no_causes() {
        assert!(verdict(Mode::Claim, 0).contains("a cause that was observed"));
        assert!(verdict(Mode::Transaction, 0).ends_with("no effect happened again."));
        assert!(verdict(Mode::Transaction, 2).starts_with("2 violation(s)"));
    }
}
