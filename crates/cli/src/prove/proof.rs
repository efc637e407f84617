//! The result of a run, as text and as a page.

use std::{collections::BTreeMap, fmt};

use lambda_idempotency_chaos::{Ended, Findings, Story};

use super::cost::Bill;
use crate::report::{List, Run};

/// The result of a run.
pub(crate) struct Proof {
    pub(crate) stack: String,
    pub(crate) region: String,
    pub(crate) run: String,
    pub(crate) orders: usize,
    /// Messages, by what they were sent to.
    pub(crate) sent: BTreeMap<&'static str, u64>,
    /// What the orders asked for.
    pub(crate) acts: BTreeMap<&'static str, u64>,
    pub(crate) ends: BTreeMap<Ended, u64>,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) dead_lettered: u64,
    pub(crate) findings: Findings,
    pub(crate) given_up: bool,
    pub(crate) bill: Bill,
    pub(crate) seconds: f64,
}

/// How many violations are shown in full.
const SHOWN: usize = 10;

impl Proof {
    pub(crate) fn violations(&self) -> u64 {
        self.findings.violations.iter().map(|violation| violation.times).sum()
    }

    fn verdict(&self) -> String {
        match self.violations() {
            0 => "No message was lost or stuck, and every effect that happened again has a cause that was observed."
                .to_owned(),
            count => format!("{count} violation(s) of what the library promises: see below."),
        }
    }

    fn messages(&self) -> u64 {
        self.sent.values().sum()
    }

    /// What a page shows.
    pub(crate) fn page<'s>(&self, story: &'s Story) -> Run<'s> {
        let violated = self.findings.violations.iter().map(|violation| {
            let (kind, times) = (format!("{:?}", violation.offence), violation.times.to_string());
            vec![kind, times, violation.what.clone(), violation.trace.join("\n")]
        });
        let ends = self.ends.iter().map(|(end, count)| (ended(*end), count));
        Run {
            title: "Proof in an AWS account".to_owned(),
            subtitle: format!("stack {}, Region {}, run {}", self.stack, self.region, self.run),
            verdict: (self.violations() == 0, self.verdict()),
            numbers: vec![
                (self.messages().to_string(), "messages"),
                (self.orders.to_string(), "orders"),
                (self.ends.values().sum::<u64>().to_string(), "invocations"),
                (self.findings.effects.to_string(), "effects"),
                (
                    self.findings.doubled.values().sum::<u64>().to_string(),
                    "effects again, with a cause",
                ),
                (self.violations().to_string(), "violations"),
                (format!("${:.3}", self.bill.dollars()), "cost"),
            ],
            story,
            lists: vec![
                List {
                    title: "Violations",
                    header: &["kind", "times", "what", "executions"],
                    rows: violated.collect(),
                },
                list(
                    "Effects that happened again",
                    &["observed cause", "times"],
                    &self.findings.doubled,
                ),
                list("What orders asked for", &["act", "orders"], &self.acts),
                list("Deliveries by outcome", &["outcome", "deliveries"], &self.outcomes),
                list("Ends of invocations", &["end", "invocations"], ends),
                list("Messages", &["sent to", "messages"], &self.sent),
                List {
                    title: "Cost",
                    header: &["what", "count", "dollars"],
                    rows: self.bill.rows(),
                },
            ],
            work_of: Story::work_of,
        }
    }
}

fn list<K: fmt::Display, N: fmt::Display>(
    title: &'static str,
    header: &'static [&'static str],
    rows: impl IntoIterator<Item = (K, N)>,
) -> List {
    let rows = rows.into_iter().map(|(name, count)| vec![name.to_string(), count.to_string()]);
    List { title, header, rows: rows.collect() }
}

fn ended(end: Ended) -> &'static str {
    match end {
        Ended::Answered => "answered",
        Ended::TimedOut => "timed out",
        Ended::Died => "its process ended",
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, indent: usize, name: &str, count: u64| {
            writeln!(f, "{:indent$}{name:<width$}{count:>9}", "", width = 44 - indent)
        };
        writeln!(f, "stack {}, Region {}, run {}\n", self.stack, self.region, self.run)?;
        if self.given_up {
            writeln!(
                f,
                "UNFINISHED: no message was settled for a long time, so the run was given up.\n"
            )?;
        }
        row(f, 0, "orders", self.orders as u64)?;
        for (act, count) in &self.acts {
            row(f, 2, act, *count)?;
        }
        row(f, 0, "messages", self.messages())?;
        for (to, count) in &self.sent {
            row(f, 2, to, *count)?;
        }
        row(f, 2, "in a dead-letter queue", self.dead_lettered)?;
        row(f, 0, "invocations", self.ends.values().sum())?;
        for (end, count) in &self.ends {
            row(f, 2, ended(*end), *count)?;
        }
        row(f, 0, "deliveries of which something was logged", self.outcomes.values().sum())?;
        for (outcome, count) in &self.outcomes {
            row(f, 2, outcome, *count)?;
        }
        row(f, 0, "effects", self.findings.effects)?;
        row(f, 0, "doubled, with an accepted cause", self.findings.doubled.values().sum())?;
        for (cause, count) in &self.findings.doubled {
            row(f, 2, &cause.to_string(), *count)?;
        }
        row(f, 0, "violations", self.violations())?;
        for violation in self.findings.violations.iter().take(SHOWN) {
            writeln!(f, "  {:?}: {}", violation.offence, violation.what)?;
            for line in &violation.trace {
                writeln!(f, "      {line}")?;
            }
        }
        if self.findings.violations.len() > SHOWN {
            writeln!(f, "  and {} more", self.findings.violations.len() - SHOWN)?;
        }
        writeln!(f, "\n{}\n", self.verdict())?;
        writeln!(
            f,
            "Cost, at list prices of us-east-1 without free tiers, in {:.0} s:",
            self.seconds
        )?;
        writeln!(f, "{}\n", self.bill)?;
        write!(
            f,
            "While the stack exists, its table and its polled queues cost some cents a day. Remove it:\n  \
                   sam delete --stack-name {} --region {}",
            self.stack, self.region
        )
    }
}
