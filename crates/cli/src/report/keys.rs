//! What happened to each key in a run: one lane for each invocation that had it.

use std::collections::BTreeMap;

use super::moment::{Kind, Moment};
use super::names::Names;
use super::observed::of_invocation;
use super::run::{Run, is_cut_off};
use super::story::StoryInvocation;

pub(crate) struct Key {
    /// The name of its work, or the beginning of its hash.
    pub(crate) name: String,
    /// The operation, if it is known.
    pub(crate) operation: String,
    pub(crate) lanes: Vec<Lane>,
}

/// What happened to a key in one invocation.
pub(crate) struct Lane {
    /// The number of the invocation, from 1.
    pub(crate) invocation: usize,
    pub(crate) pid: u32,
    /// Milliseconds since the run began.
    pub(crate) began: f64,
    pub(crate) ended: f64,
    /// Whether the process died or missed its deadline.
    pub(crate) is_cut_off: bool,
    /// How it ended for this key, in a few words.
    pub(crate) end: String,
    pub(crate) moments: Vec<Moment>,
}

impl Key {
    pub(crate) fn count(&self, kind: Kind) -> usize {
        let moments = self.lanes.iter().flat_map(|lane| &lane.moments);
        moments.filter(|moment| moment.kind == kind).count()
    }
}

/// What happened to each key, in the order of their first moments.
pub(crate) fn keys(run: &Run<'_>) -> Vec<Key> {
    let names = Names::of(run);
    let mut keys: BTreeMap<String, Key> = BTreeMap::new();
    for (position, seen) in run.story.invocations.iter().enumerate() {
        for (name, moments) in of_invocation(run, &names, seen) {
            let end = in_words(&names, seen, &name);
            let key = keys.entry(name.clone()).or_insert_with(|| Key {
                operation: names.operation(&name),
                name,
                lanes: Vec::new(),
            });
            key.lanes.push(lane(run, (position + 1, end), seen, moments));
        }
    }
    let mut keys: Vec<Key> = keys.into_values().collect();
    for key in &mut keys {
        key.lanes.sort_by(|a, b| a.began.total_cmp(&b.began));
        mark_repeated(key);
    }
    // Items of the application's own tables come after the keys.
    let is_item = |key: &Key| key.operation.is_empty();
    keys.sort_by(|a, b| is_item(a).cmp(&is_item(b)).then(first(a).total_cmp(&first(b))));
    keys
}

fn first(key: &Key) -> f64 {
    key.lanes.first().map_or(0.0, |lane| lane.began)
}

fn lane(
    run: &Run<'_>,
    (invocation, end): (usize, String),
    seen: &StoryInvocation,
    moments: Vec<Moment>,
) -> Lane {
    let began = run.ms(seen.invocation.began);
    let last = moments.iter().map(|moment| moment.until.unwrap_or(moment.at));
    let ended = run.ms(seen.invocation.began + seen.invocation.duration);
    let ended = last.fold(ended, f64::max);
    let (pid, is_cut_off) = (seen.invocation.pid, is_cut_off(seen));
    Lane { invocation, pid, began, ended, is_cut_off, end, moments }
}

/// The outcomes of a key's records in an invocation, each once, and what cut the invocation off.
fn in_words(names: &Names, seen: &StoryInvocation, name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let own = seen.invocation.records.iter().filter(|line| names.of_record(&line.record) == name);
    let outcomes = own.map(|line| line.outcome.to_string());
    let cut_off = is_cut_off(seen).then(|| seen.invocation.result.to_string());
    for word in outcomes.chain(cut_off) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(", ")
}

/// Marks every effect of a key that happened before.
fn mark_repeated(key: &mut Key) {
    let mut effects: Vec<&mut Moment> = key
        .lanes
        .iter_mut()
        .flat_map(|lane| &mut lane.moments)
        .filter(|moment| moment.kind == Kind::Effect)
        .collect();
    effects.sort_by(|a, b| a.at.total_cmp(&b.at));
    let mut seen: Vec<String> = Vec::new();
    for effect in effects {
        if seen.contains(&effect.text) {
            effect.kind = Kind::Again;
        } else {
            seen.push(effect.text.clone());
        }
    }
}
