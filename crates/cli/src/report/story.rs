//! The course of a run, and of each key: one lane for each invocation that had it.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Instant,
};

use lambda_idempotency_core::key;
use lambda_idempotency_local::{
    Disposition, Invocation, InvocationResult, ItemAnswer, ItemRequest, Outcome, RecordLine,
    StoreRequest, Verb,
};

/// The course of a run.
pub(crate) struct Story {
    /// When the run began.
    pub(crate) began: Instant,
    /// The invocations, in the order in which they ended.
    pub(crate) invocations: Vec<StoryInvocation>,
    /// The effects, in the order in which they were reported.
    pub(crate) effects: Vec<StoryEffect>,
}

/// An invocation, and what became of its records.
pub(crate) struct StoryInvocation {
    pub(crate) invocation: Invocation,
    pub(crate) messages: Vec<(String, Disposition)>,
}

/// An effect that a handler reported.
pub(crate) struct StoryEffect {
    /// When it was seen.
    pub(crate) at: Instant,
    pub(crate) pid: u32,
    /// The record for which it happened.
    pub(crate) message: String,
    /// The hash of its key, if the function said it.
    pub(crate) key_hash: Option<String>,
    pub(crate) name: String,
}

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

/// Something that happened at a time, or during one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) at: f64,
    pub(crate) until: Option<f64>,
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

/// The kind of a moment, which has its own sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Claim,
    Refused,
    Handler,
    Effect,
    /// An effect after another one of the same name for the same key.
    Again,
    Completed,
    Released,
    Failed,
    Answered,
    Returned,
    Fault,
}

impl Moment {
    pub(crate) fn new(at: f64, kind: Kind, text: &str) -> Self {
        Self { at, until: None, kind, text: text.to_owned() }
    }
}

/// The names of all keys of a run, by hash and by record.
#[derive(Default)]
pub(super) struct Names {
    by_hash: HashMap<String, String>,
    by_record: HashMap<String, String>,
    operations: HashMap<String, String>,
    /// The tables of idempotency records.
    tables: HashSet<String>,
}

impl Names {
    pub(super) fn of(run: &Run<'_>) -> Self {
        let mut names = Self::default();
        for line in run.story.invocations.iter().flat_map(|seen| &seen.invocation.records) {
            let hash = line.key_hash.as_deref();
            let name = hash.map_or_else(|| line.record.clone(), short);
            if let Some(hash) = hash {
                names.by_hash.entry(hash.to_owned()).or_insert_with(|| name.clone());
            }
            names.operations.entry(name.clone()).or_insert_with(|| line.operation.clone());
            names.by_record.entry(line.record.clone()).or_insert(name);
        }
        let requests = run.story.invocations.iter().flat_map(|seen| &seen.invocation.requests);
        for item in requests.flat_map(|request| &request.items) {
            let hash = logged_hash(&item.key);
            if names.by_hash.contains_key(&hash) {
                names.tables.insert(item.table.clone());
            }
            // The claim says whose it is, also where the process died before it logged that.
            if let Some(record) = &item.record {
                let name = names.of_hash(&hash);
                names.by_record.entry(record.clone()).or_insert_with(|| name.clone());
                if let Some((operation, _)) = item.key.split_once('#') {
                    names.operations.entry(name).or_insert_with(|| operation.to_owned());
                }
            }
        }
        names
    }

    /// The hash of an item's key, if it is an idempotency record. Readable keys and those of Powertools look like any
    /// other key, so the table counts, too.
    pub(super) fn hash_of(&self, item: &ItemRequest) -> Option<String> {
        let is_record = self.tables.contains(&item.table) || has_hash(&item.key);
        is_record.then(|| logged_hash(&item.key))
    }

    pub(super) fn of_hash(&self, hash: &str) -> String {
        self.by_hash.get(hash).cloned().unwrap_or_else(|| short(hash))
    }

    pub(super) fn of_record(&self, record: &str) -> String {
        self.by_record.get(record).cloned().unwrap_or_else(|| record.to_owned())
    }

    pub(super) fn operation(&self, name: &str) -> String {
        self.operations.get(name).cloned().unwrap_or_default()
    }
}

/// The beginning of a hash, enough to tell keys apart.
pub(crate) fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

/// Whether a key as the store has it ends with a hash: `place-order#c886be2b...`.
fn has_hash(key: &str) -> bool {
    key.rsplit_once('#').is_some_and(|(_, hash)| hash.len() >= 32)
}

/// The hash of a key as the function logs it. For a readable key it is not in its text.
fn logged_hash(key: &str) -> String {
    key::Key::from_text(key).hash().to_owned()
}

/// The moments of each key in an invocation, in time, by the key's name.
pub(super) fn of_invocation(
    run: &Run<'_>,
    names: &Names,
    seen: &StoryInvocation,
) -> BTreeMap<String, Vec<Moment>> {
    let mut keys: BTreeMap<String, Vec<Moment>> = BTreeMap::new();
    let invocation = &seen.invocation;
    let ended = run.ms(invocation.began + invocation.duration);
    for request in &invocation.requests {
        for item in &request.items {
            if let Some(hash) = names.hash_of(item) {
                let moments = keys.entry(names.of_hash(&hash)).or_default();
                moments.extend(of_request(run, request, item, moments));
            } else if !matches!(item.verb, Verb::Read | Verb::Check)
                && item.answer == ItemAnswer::Done
            {
                // A write to a table of the application's own is an effect, too.
                let name = format!("{}: {}", item.table, item.key);
                let at = run.ms(request.began + request.took);
                keys.entry(name).or_default().push(Moment::new(
                    at,
                    Kind::Effect,
                    &request.operation,
                ));
            }
        }
    }
    for effect in run.story.effects.iter().filter(|effect| is_in(run, seen, effect.pid, effect.at))
    {
        let hash = effect.key_hash.as_deref();
        let name = hash.map(|hash| names.of_hash(hash));
        let name = name.unwrap_or_else(|| names.of_record(&effect.message));
        // A process that was cut off may run on; any other wrote the line before it answered.
        let at = run.ms(effect.at);
        let at = if is_cut_off(seen) { at } else { at.min(ended) };
        keys.entry(name).or_default().push(Moment::new(at, Kind::Effect, &effect.name));
    }
    for line in &invocation.records {
        let moments = keys.entry(names.of_record(&line.record)).or_default();
        moments.extend(handler(line, moments));
        moments.push(end(line, seen, ended));
    }
    // Records of which the function logged nothing: its process died, or it does not use the library.
    for (record, end) in &seen.messages {
        if !invocation.records.iter().any(|line| line.record == *record) {
            let kind = answered(*end);
            let text = format!("{end}, nothing was logged");
            keys.entry(names.of_record(record)).or_default().push(Moment::new(ended, kind, &text));
        }
    }
    for moments in keys.values_mut() {
        if is_cut_off(seen) {
            moments.push(Moment::new(ended, Kind::Fault, &invocation.result.to_string()));
        }
        moments.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.kind.cmp(&b.kind)));
    }
    keys
}

/// Whether something happened to a process while it had this invocation, or before it got the next one: lines are read
/// a little later than they are written.
fn is_in(run: &Run<'_>, seen: &StoryInvocation, pid: u32, at: Instant) -> bool {
    let begins = seen.invocation.began;
    let is_next = |other: &StoryInvocation| {
        let other = &other.invocation;
        other.pid == pid && other.began > begins && other.began <= at
    };
    seen.invocation.pid == pid && at >= begins && !run.story.invocations.iter().any(is_next)
}

fn of_request(
    run: &Run<'_>,
    request: &StoreRequest,
    item: &ItemRequest,
    earlier: &[Moment],
) -> Option<Moment> {
    let answered = run.ms(request.began + request.took);
    let has_claim = earlier.iter().any(|moment| moment.kind == Kind::Claim);
    let (kind, text) = match (item.verb, item.status.as_deref(), item.answer) {
        (Verb::Read | Verb::Check, ..) => return None,
        (_, _, ItemAnswer::Refused) => (Kind::Refused, "claim not made: the key is known"),
        (_, _, ItemAnswer::Failed) => (Kind::Fault, "the store answered with an error"),
        (_, Some("COMPLETED"), _) => (Kind::Completed, "completed"),
        (_, Some("FAILED"), _) => (Kind::Failed, "failed permanently"),
        (Verb::Delete, ..) => (Kind::Released, "claim undone"),
        (_, Some(_), _) if has_claim => (Kind::Released, "claim released or renewed"),
        (_, Some(_), _) => (Kind::Claim, "claimed"),
        (_, None, _) => return None,
    };
    Some(Moment::new(answered, kind, text))
}

/// The time of the handler: from the claim until the settlement, or for as long as the function says.
fn handler(line: &RecordLine, moments: &[Moment]) -> Option<Moment> {
    if !line.outcome.ran() && line.outcome != Outcome::TimedOut {
        return None;
    }
    let claim = moments.iter().rfind(|moment| moment.kind == Kind::Claim)?;
    let settled = moments.iter().find(|moment| {
        moment.at > claim.at
            && matches!(moment.kind, Kind::Completed | Kind::Failed | Kind::Released)
    });
    let until = settled.map(|moment| moment.at).or(line.ms.map(|ms| claim.at + ms))?;
    let text = format!("handler, {:.1} ms", line.ms.unwrap_or(until - claim.at));
    Some(Moment { at: claim.at, until: Some(until), kind: Kind::Handler, text })
}

const fn answered(end: Disposition) -> Kind {
    match end {
        Disposition::Done | Disposition::Diverted => Kind::Answered,
        _ => Kind::Returned,
    }
}

/// The end of the record in the invocation.
fn end(line: &RecordLine, seen: &StoryInvocation, ended: f64) -> Moment {
    let end = seen.messages.iter().find(|(record, _)| *record == line.record);
    let end = end.map_or(Disposition::Done, |(_, end)| *end);
    let kind = answered(end);
    let problem = line.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    Moment::new(ended, kind, &format!("{}, {end} ({}){problem}", line.outcome, line.record))
}

pub(crate) struct Key {
    /// The name of its work, or the beginning of its hash.
    pub(crate) name: String,
    /// The operation, if it is known.
    pub(crate) operation: String,
    pub(crate) lanes: Vec<Lane>,
}

/// The course of a key in one invocation.
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

/// The course of each key, in the order of their first moments.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hash_of_an_idempotency_record_is_a_hash() {
        let hash = "c886be2ba0373bff539974d05cd7848f9c08ef72a07439a8b70a66f14f65e92c";
        assert_eq!(logged_hash(&format!("place-order#{hash}")), hash);
        assert!(has_hash(&format!("place-order#{hash}")));
        assert!(!has_hash("o-1") && !has_hash("room#7"));
    }
}
