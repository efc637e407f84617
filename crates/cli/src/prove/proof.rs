//! The result of a run.

use std::collections::BTreeMap;

use lambda_idempotency_chaos::Findings;

use super::evidence::{DIED, TIMED_OUT};
use crate::{
    audit::{Summary, counts},
    report::List,
};

/// The result of a run.
pub(crate) struct Proof {
    pub(crate) stack: String,
    pub(crate) region: String,
    pub(crate) run: String,
    pub(crate) orders: usize,
    /// Messages, by what they were sent to.
    pub(crate) sent: BTreeMap<&'static str, u64>,
    /// The acts that the orders asked for.
    pub(crate) acts: BTreeMap<&'static str, u64>,
    pub(crate) ends: BTreeMap<&'static str, u64>,
    pub(crate) outcomes: BTreeMap<String, u64>,
    pub(crate) dead_lettered: u64,
    pub(crate) findings: Findings,
    /// The faults that should have been seen.
    pub(crate) unseen: Vec<&'static str>,
    pub(crate) given_up: bool,
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
        let end =
            "no message was acknowledged or dead-lettered for a long time, so the run was given up";
        self.given_up.then_some(end).into_iter().chain(self.unseen.iter().copied())
    }

    fn messages(&self) -> u64 {
        self.sent.values().sum()
    }

    /// Everything that is shown of it.
    pub(crate) fn summary(&self) -> Summary<'_> {
        let Self { stack, region, run, findings, .. } = self;
        Summary {
            subtitle: format!("stack {stack}, Region {region}, run {run}, {:.0} s", self.seconds),
            numbers: vec![
                (self.messages(), "messages"),
                (self.dead_lettered, "in a dead-letter queue"),
                (self.orders as u64, "orders"),
                (self.ends.values().sum(), "invocations"),
                (findings.effects, "effects"),
                (findings.doubled.values().sum(), "effects again, with a cause"),
                (self.violations(), "violations"),
            ],
            findings,
            lists: vec![
                List {
                    title: "Missing",
                    header: &["what"],
                    rows: self.missing().map(|what| vec![what.to_owned()]).collect(),
                },
                counts(
                    "Effects that happened again",
                    &["observed cause", "times"],
                    &findings.doubled,
                ),
                counts("What orders asked for", &["act", "orders"], &self.acts),
                counts("Deliveries by outcome", &["outcome", "deliveries"], &self.outcomes),
                counts("Ends of invocations", &["end", "invocations"], &self.ends),
                counts("Messages", &["sent to", "messages"], &self.sent),
            ],
            verdict: self.verdict(),
        }
    }

    /// How to remove the stack, and why.
    pub(crate) fn advice(&self) -> String {
        format!(
            "While the stack exists, its table and its polled queues cost money. Remove it:\n  \
             sam delete --stack-name {} --region {}",
            self.stack, self.region
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                seconds: 1.0,
            };
            let text = proof.summary().to_string();
            assert_eq!(proof.is_proved(), expected);
            assert_eq!(text.contains("Nothing is proved"), !expected, "{text}");
            assert_eq!(text.contains("Missing"), !expected, "{text}");
        }
    }
}
