//! What a page is made of, from whichever command.

use std::{collections::BTreeMap, fmt::Display, time::Instant};

use lambda_idempotency_chaos::{Findings, Offence, Story, StoryInvocation, Violation};
use lambda_idempotency_local::InvocationResult;

pub(crate) struct Run<'a> {
    pub(crate) title: String,
    /// The command, or the settings.
    pub(crate) subtitle: String,
    /// Whether all went well, and the sentence that says so or not.
    pub(crate) verdict: (bool, String),
    /// Numbers with their meaning.
    pub(crate) numbers: Vec<(String, &'static str)>,
    pub(crate) story: &'a Story,
    /// Further tables.
    pub(crate) lists: Vec<List>,
    /// The name of the work of a record, where it is known without its key.
    pub(crate) work_of: fn(&str) -> Option<String>,
}

impl Run<'_> {
    /// Milliseconds from the beginning of the run to `at`.
    pub(crate) fn ms(&self, at: Instant) -> f64 {
        at.saturating_duration_since(self.story.began).as_secs_f64() * 1000.0
    }
}

/// Whether the process of an invocation died or missed its deadline.
pub(crate) fn is_cut_off(told: &StoryInvocation) -> bool {
    let result = &told.invocation.result;
    matches!(result, InvocationResult::Exited { .. } | InvocationResult::TimedOut)
}

pub(crate) struct List {
    pub(crate) title: &'static str,
    pub(crate) header: &'static [&'static str],
    pub(crate) rows: Vec<Vec<String>>,
}

/// How many violations of a kind are shown in full.
const SHOWN: usize = 3;

impl List {
    pub(crate) fn counts<K: Display>(
        title: &'static str,
        header: &'static [&'static str],
        counts: &BTreeMap<K, u64>,
    ) -> Self {
        let rows = counts.iter().map(|(name, count)| vec![name.to_string(), count.to_string()]);
        Self { title, header, rows: rows.collect() }
    }

    pub(crate) fn violations(findings: &Findings) -> Self {
        let row = |Violation { offence, times, what, trace }: &Violation| {
            vec![format!("{offence:?}"), times.to_string(), what.clone(), trace.join("\n")]
        };
        let mut of_kind: BTreeMap<Offence, usize> = BTreeMap::new();
        let shown = findings.violations.iter().filter(|violation| {
            let nth = of_kind.entry(violation.offence).or_default();
            *nth += 1;
            *nth <= SHOWN
        });
        let mut rows: Vec<_> = shown.map(row).collect();
        if let more @ 1.. = findings.violations.len() - rows.len() {
            let more = format!("and {more} more");
            rows.push(vec![String::new(), String::new(), more, String::new()]);
        }
        Self { title: "Violations", header: &["kind", "times", "what", "executions"], rows }
    }
}
