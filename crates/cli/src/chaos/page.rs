//! The page of a run under faults.

use lambda_idempotency_chaos::{Mode, Report, Story, StoryEffect, StoryInvocation};

use crate::invoke::end;
use crate::report::{Effect, List, Run, Shown, Signal};

/// Everything that the page shows.
pub(crate) fn run<'r>(report: &'r Report, story: &'r Story) -> Run<'r> {
    let faults: Vec<_> = report.faults.iter().map(|kind| kind.as_str()).collect();
    let doubled: u64 = report.doubled.values().sum();
    let violations: u64 = report.violations.iter().map(|violation| violation.times).sum();
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
            (report.effects.to_string(), "effects"),
            match commits {
                true => (report.not_committed.to_string(), "collected, and not committed"),
                false => (doubled.to_string(), "effects again, with a cause"),
            },
            (violations.to_string(), "violations"),
        ],
        began: story.began,
        invocations: story.invocations.iter().map(seen).collect(),
        effects: story.effects.iter().map(effect).collect(),
        signals: story
            .faults
            .iter()
            .map(|fault| Signal { at: fault.at, pid: fault.pid, kind: fault.kind })
            .collect(),
        lists: [violated(report), injected(report), outcomes(report)]
            .into_iter()
            // In a transaction, no cause excuses a second effect.
            .chain((!commits).then(|| causes(report)))
            .collect(),
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

fn seen(answered: &StoryInvocation) -> Shown<'_> {
    let ends = answered.messages.iter().map(|(id, disposition)| (id.clone(), end(*disposition)));
    Shown { invocation: &answered.invocation, ends: ends.collect() }
}

fn effect(effect: &StoryEffect) -> Effect {
    Effect {
        at: effect.at,
        pid: effect.pid,
        record: effect.message.clone(),
        key_hash: None,
        name: effect.name.clone(),
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
        rows: report.violations.iter().map(row).collect(),
    }
}

fn injected(report: &Report) -> List {
    let rows =
        report.injected.iter().map(|(kind, count)| vec![kind.to_string(), count.to_string()]);
    List { title: "Faults injected", header: &["fault", "times"], rows: rows.collect() }
}

fn outcomes(report: &Report) -> List {
    let rows =
        report.outcomes.iter().map(|(outcome, count)| vec![outcome.clone(), count.to_string()]);
    List {
        title: "Deliveries by outcome",
        header: &["outcome", "deliveries"],
        rows: rows.collect(),
    }
}

fn causes(report: &Report) -> List {
    let rows =
        report.doubled.iter().map(|(cause, count)| vec![cause.to_string(), count.to_string()]);
    List {
        title: "Effects that happened again",
        header: &["observed cause", "times"],
        rows: rows.collect(),
    }
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
