//! The contents of the page of a local run.

use std::{collections::BTreeMap, fmt::Display, time::Instant};

use lambda_idempotency_local::InvocationResult;

use super::story::{Story, StoryInvocation};

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

impl List {
    pub(crate) fn counts<K: Display>(
        title: &'static str,
        header: &'static [&'static str],
        counts: &BTreeMap<K, u64>,
    ) -> Self {
        let rows = counts.iter().map(|(name, count)| vec![name.to_string(), count.to_string()]);
        Self { title, header, rows: rows.collect() }
    }
}
