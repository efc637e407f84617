//! The result of a run, as text and as a page.

use std::{collections::BTreeMap, fmt};

use lambda_idempotency_chaos::{Findings, Offence, Story};

use super::{
    cost::Bill,
    evidence::{DIED, TIMED_OUT},
};
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
    pub(crate) ends: BTreeMap<&'static str, u64>,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) dead_lettered: u64,
    pub(crate) findings: Findings,
    /// What should have been seen.
    pub(crate) unseen: Vec<&'static str>,
    pub(crate) given_up: bool,
    pub(crate) bill: Bill,
    pub(crate) seconds: f64,
}

/// Which faults the orders asked for, and nobody saw. Without them a run proves nothing: perhaps the reports of Lambda
/// are not read as they are meant.
pub(crate) fn unseen(
    acts: &BTreeMap<&'static str, u64>,
    ends: &BTreeMap<&'static str, u64>,
    outcomes: &BTreeMap<String, u64>,
    unreported: usize,
) -> Vec<&'static str> {
    let asked = |act: &str| acts.contains_key(act);
    let has = |outcome: &str| outcomes.contains_key(outcome);
    let seen = [
        (
            !asked("die") || ends.contains_key(DIED),
            "orders ended their process, and no report says so",
        ),
        (!asked("block") || ends.contains_key(TIMED_OUT), "orders blocked, and no report says so"),
        (!asked("hang") || has("timed_out"), "orders hung, and no line of the function says so"),
        (!asked("throw") || has("failed"), "orders failed, and no line of the function says so"),
        (
            unreported == 0,
            "Lambda has not reported the end of all invocations that wrote to the ledger",
        ),
    ];
    seen.into_iter().filter(|(seen, _)| !seen).map(|(_, what)| what).collect()
}

/// How many violations of a kind are shown in full.
const SHOWN: usize = 3;

impl Proof {
    pub(crate) fn violations(&self) -> u64 {
        self.findings.violations.iter().map(|violation| violation.times).sum()
    }

    /// Whether everything happened that was to be seen, and nothing is wrong with it.
    pub(crate) fn is_proved(&self) -> bool {
        self.violations() == 0 && !self.given_up && self.unseen.is_empty()
    }

    fn verdict(&self) -> String {
        match self.violations() {
            0 if !self.is_proved() => "Nothing is proved: see what is missing.".to_owned(),
            0 => "No message was lost or stuck, and every effect that happened again has a cause that was observed."
                .to_owned(),
            count => format!("{count} violation(s) of what the library promises."),
        }
    }

    fn missing(&self) -> impl Iterator<Item = &'static str> {
        let end = "no message was settled for a long time, so the run was given up";
        self.given_up.then_some(end).into_iter().chain(self.unseen.iter().copied())
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
        Run {
            title: "Proof in an AWS account".to_owned(),
            subtitle: format!("stack {}, Region {}, run {}", self.stack, self.region, self.run),
            verdict: (self.is_proved(), self.verdict()),
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
                List {
                    title: "Missing",
                    header: &["what"],
                    rows: self.missing().map(|what| vec![what.to_owned()]).collect(),
                },
                list(
                    "Effects that happened again",
                    &["observed cause", "times"],
                    &self.findings.doubled,
                ),
                list("What orders asked for", &["act", "orders"], &self.acts),
                list("Deliveries by outcome", &["outcome", "deliveries"], &self.outcomes),
                list("Ends of invocations", &["end", "invocations"], &self.ends),
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

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, indent: usize, name: &str, count: u64| {
            writeln!(f, "{:indent$}{name:<width$}{count:>9}", "", width = 44 - indent)
        };
        writeln!(f, "stack {}, Region {}, run {}\n", self.stack, self.region, self.run)?;
        for what in self.missing() {
            writeln!(f, "MISSING: {what}\n")?;
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
            row(f, 2, end, *count)?;
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
        let mut of_kind: BTreeMap<Offence, usize> = BTreeMap::new();
        let shown = self.findings.violations.iter().filter(|violation| {
            let nth = of_kind.entry(violation.offence).or_default();
            *nth += 1;
            *nth <= SHOWN
        });
        let shown: Vec<_> = shown.collect();
        for violation in &shown {
            writeln!(f, "  {:?}: {}", violation.offence, violation.what)?;
            for line in &violation.trace {
                writeln!(f, "      {line}")?;
            }
        }
        if let more @ 1.. = self.findings.violations.len() - shown.len() {
            writeln!(f, "  and {more} more")?;
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
            "While the stack exists, its table and its polled queues cost about 20 cents a day. Remove it:\n  \
                   sam delete --stack-name {} --region {}",
            self.stack, self.region
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::cost::Counted;

    #[test]
    fn a_fault_that_nobody_saw_proves_nothing() {
        let acts = BTreeMap::from([("die", 1), ("block", 1), ("hang", 1), ("throw", 1)]);
        let (none, said) = (BTreeMap::new(), BTreeMap::new());
        assert_eq!(unseen(&acts, &none, &said, 1).len(), 5);
        assert_eq!(unseen(&BTreeMap::from([("place", 9)]), &none, &said, 0), [""; 0]);
        let ends = BTreeMap::from([(DIED, 1), (TIMED_OUT, 1)]);
        let said = BTreeMap::from([("timed_out".to_owned(), 1), ("failed".to_owned(), 1)]);
        assert_eq!(unseen(&acts, &ends, &said, 0), [""; 0]);
    }

    #[test]
    fn only_a_whole_run_without_violations_is_proved() {
        let (invocations, effects, faults) = (vec![], vec![], vec![]);
        let story = Story { began: std::time::Instant::now(), invocations, effects, faults };
        for (given_up, unseen, expected) in
            [(false, vec![], true), (true, vec![], false), (false, vec!["a fault"], false)]
        {
            let proof = Proof {
                stack: String::new(),
                region: String::new(),
                run: String::new(),
                orders: 1,
                sent: BTreeMap::new(),
                acts: BTreeMap::new(),
                ends: BTreeMap::new(),
                outcomes: BTreeMap::new(),
                dead_lettered: 0,
                findings: Findings::default(),
                unseen,
                given_up,
                bill: Bill::new(&Counted::default()),
                seconds: 1.0,
            };
            assert_eq!((proof.is_proved(), proof.page(&story).verdict.0), (expected, expected));
            assert_eq!(proof.to_string().contains("Nothing is proved"), !expected);
            assert_eq!(proof.to_string().contains("MISSING"), !expected);
        }
    }
}
