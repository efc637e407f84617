//! The result of a run, for people and for programs.

use std::{collections::BTreeMap, fmt};

use lambda_idempotency_local::Outcome;
use serde::Serialize;

use crate::{FaultKind, Mode, Offence, Origin, Story, TestedStore, findings::Findings};

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The digest of the schedule, in hexadecimal digits: the same for the same settings.
    pub schedule: String,
    /// Processes at a time.
    pub processes: usize,
    /// How effects and completions were kept together.
    pub mode: Mode,
    /// Where the function kept its records.
    pub store: TestedStore,
    /// What delivered the messages.
    pub source: Origin,
    /// The kinds of faults that were enabled.
    pub faults: Vec<FaultKind>,
    /// Messages sent.
    pub messages: usize,
    /// Messages sent once more at the end, for keys that were still held.
    pub probes: usize,
    /// Distinct keys among them.
    pub keys: usize,
    /// Deliveries: each message once, and again each time it was returned.
    pub deliveries: u64,
    /// Invocations.
    pub invocations: usize,
    /// Deliveries by the outcome that the function logged or, without one, by how the invocation ended.
    pub outcomes: BTreeMap<String, u64>,
    /// Messages acknowledged.
    pub acknowledged: usize,
    /// Messages dead-lettered.
    pub dead_lettered: usize,
    /// Deliveries that were returned to their source.
    pub returned: u64,
    /// Messages neither acknowledged nor dead-lettered at the end.
    pub left: usize,
    /// Whether the run ended because no message was settled for [`Settings::patience`](crate::Settings::patience): it is unfinished then.
    pub given_up: bool,
    /// Handlers started.
    pub executions: usize,
    /// What the audit found.
    #[serde(flatten)]
    pub findings: Findings,
    /// Messages that orders published.
    pub published: usize,
    /// Messages that the relay sent, because no delivery did.
    pub relayed: usize,
    /// Messages that were sent to the consumer, copies included.
    pub to_consumer: usize,
    /// Of these, how many its queue delivered again although they were acknowledged.
    pub redelivered: u64,
    /// How often the consumer got one of them.
    pub consumer_deliveries: u64,
    /// The ids that the consumer has received: each once, or there is a violation.
    pub received: usize,
    /// How often each fault was injected: processes signalled, deadlines missed, requests changed.
    pub injected: BTreeMap<FaultKind, u64>,
    /// Requests to the store, as they came through its proxy.
    pub requests: u64,
    /// Write units that these requests consumed, in DynamoDB.
    pub write_units: f64,
    /// How long the run took, in seconds.
    pub seconds: f64,
    /// What happened, if [`Settings::story`](crate::Settings::story) asked for it. It is not in the JSON.
    #[serde(skip)]
    pub story: Option<Story>,
}

impl Report {
    /// Deliveries with this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: &Outcome) -> u64 {
        self.outcomes.get(outcome.as_str()).copied().unwrap_or_default()
    }
}

/// How many violations are shown in full.
const SHOWN: usize = 10;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, indent: usize, name: &str, count: u64| {
            writeln!(f, "{:indent$}{name:<width$}{count:>9}", "", width = 44 - indent)
        };
        write!(
            f,
            "seed {}, schedule {}, {} processes, mode {}, source {}",
            self.seed, self.schedule, self.processes, self.mode, self.source
        )?;
        let is_in_dynamodb = self.store == TestedStore::DynamoDb;
        writeln!(
            f,
            "{}",
            if is_in_dynamodb { String::new() } else { format!(", store {}", self.store) }
        )?;
        let faults: Vec<_> = self.faults.iter().map(|kind| kind.as_str()).collect();
        writeln!(f, "faults: {}\n", faults.join(", "))?;
        if self.given_up {
            writeln!(
                f,
                "UNFINISHED: no message was settled for a long time, so the run was given up.\nA machine that has no \
                 processor time for the function does that: use a longer timeout, or more patience.\n"
            )?;
        }
        row(f, 0, "messages sent", self.messages as u64)?;
        row(f, 0, "sent once more, for keys held at the end", self.probes as u64)?;
        row(f, 0, "distinct keys", self.keys as u64)?;
        row(f, 0, "deliveries", self.deliveries)?;
        for (outcome, count) in &self.outcomes {
            row(f, 2, outcome, *count)?;
        }
        row(f, 0, "messages acknowledged", self.acknowledged as u64)?;
        row(f, 0, "messages dead-lettered, as scripted", self.dead_lettered as u64)?;
        row(f, 0, "deliveries returned to their source", self.returned)?;
        row(f, 0, "handlers started", self.executions as u64)?;
        row(f, 0, "effects", self.findings.effects)?;
        if self.mode.commits() {
            row(f, 2, "committed, and nothing logged afterwards", self.findings.unanswered)?;
            row(f, 0, "collected, and not committed", self.findings.not_committed)?;
            if self.mode == Mode::Optimistic {
                row(f, 0, "ran again, and applied nothing", self.findings.ran_again)?;
            }
        } else {
            let doubled = match self.mode {
                Mode::Steps => "step ran again unrecorded, with a cause",
                _ => "doubled, with an accepted cause",
            };
            row(f, 0, doubled, self.findings.doubled.values().sum())?;
            for (cause, count) in &self.findings.doubled {
                row(f, 2, &cause.to_string(), *count)?;
            }
            row(f, 2, "of these, a fence would refuse", self.findings.stale)?;
            if self.mode == Mode::Steps {
                row(
                    f,
                    0,
                    "executions answered from a recorded step",
                    self.findings.answered_steps,
                )?;
            }
        }
        if self.published > 0 {
            row(f, 0, "messages published by orders", self.published as u64)?;
            row(f, 2, "sent", self.findings.sent)?;
            row(f, 2, "sent by the relay", self.relayed as u64)?;
            row(
                f,
                2,
                "sent again with the same id, with a cause",
                self.findings.copies.values().sum(),
            )?;
            for (cause, count) in &self.findings.copies {
                row(f, 4, &cause.to_string(), *count)?;
            }
            row(f, 0, "messages for the consumer, with copies", self.to_consumer as u64)?;
            row(f, 2, "delivered again by its queue", self.redelivered)?;
            row(f, 2, "deliveries", self.consumer_deliveries)?;
            row(f, 2, "received by their ids", self.received as u64)?;
        }
        writeln!(f, "\nfaults injected")?;
        for (kind, count) in &self.injected {
            row(f, 2, kind.as_str(), *count)?;
        }
        writeln!(f)?;
        row(f, 0, "lost", self.findings.count(Offence::Lost))?;
        row(f, 0, "stuck", self.findings.count(Offence::Stuck))?;
        let doubled = match self.mode {
            Mode::Claim | Mode::Steps => "doubled without a cause",
            Mode::Transaction | Mode::Optimistic => "doubled",
        };
        row(f, 0, doubled, self.findings.count(Offence::Doubled))?;
        if self.published > 0 {
            row(f, 0, "messages not sent", self.findings.count(Offence::Unsent))?;
            row(f, 0, "messages with another id", self.findings.count(Offence::MessageId))?;
        }
        let all: u64 = self.findings.violations.iter().map(|violation| violation.times).sum();
        row(f, 0, "violations, all kinds", all)?;
        for violation in self.findings.violations.iter().take(SHOWN) {
            writeln!(f, "  {:?}: {}", violation.offence, violation.what)?;
            for line in &violation.trace {
                writeln!(f, "      {line}")?;
            }
        }
        if self.findings.violations.len() > SHOWN {
            writeln!(f, "  and {} more", self.findings.violations.len() - SHOWN)?;
        }
        write!(f, "\n{} invocations, {} store requests, ", self.invocations, self.requests)?;
        if is_in_dynamodb {
            write!(f, "{:.0} write units, ", self.write_units)?;
        }
        write!(f, "{:.1} s", self.seconds)
    }
}
