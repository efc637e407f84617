//! From invocations to what happened to each key, in time.

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use lambda_idempotency_local::{ItemAnswer, ItemRequest, Outcome, RecordLine, StoreRequest, Verb};

use super::run::{Run, Shown};

/// What happened to a key.
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

impl Key {
    pub(crate) fn count(&self, kind: Kind) -> usize {
        let moments = self.lanes.iter().flat_map(|lane| &lane.moments);
        moments.filter(|moment| moment.kind == kind).count()
    }
}

/// What happened to each key, in the order of their first moments.
pub(crate) fn keys(run: &Run<'_>) -> Vec<Key> {
    let known = Known::of(run);
    let mut keys: BTreeMap<String, Key> = BTreeMap::new();
    for (position, seen) in run.invocations.iter().enumerate() {
        for (name, moments) in of_invocation(run, &known, seen) {
            let end = in_words(run, &known, seen, &name);
            let key = keys.entry(name.clone()).or_insert_with(|| Key {
                operation: known.operation(&name),
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

fn ms(run: &Run<'_>, at: Instant) -> f64 {
    at.saturating_duration_since(run.began).as_secs_f64() * 1000.0
}

/// Which key a hash or a record belongs to.
#[derive(Default)]
struct Known {
    by_hash: HashMap<String, String>,
    by_record: HashMap<String, String>,
    operations: HashMap<String, String>,
}

impl Known {
    fn of(run: &Run<'_>) -> Self {
        let mut known = Self::default();
        for line in run.invocations.iter().flat_map(|seen| &seen.invocation.records) {
            let work = (run.work_of)(&line.record);
            let hash = line.key_hash.as_deref();
            let name = work.or_else(|| hash.map(short)).unwrap_or_else(|| line.record.clone());
            if let Some(hash) = hash {
                known.by_hash.entry(hash.to_owned()).or_insert_with(|| name.clone());
            }
            known.operations.entry(name.clone()).or_insert_with(|| line.operation.clone());
            known.by_record.entry(line.record.clone()).or_insert(name);
        }
        known
    }

    fn hash(&self, hash: &str) -> String {
        self.by_hash.get(hash).cloned().unwrap_or_else(|| short(hash))
    }

    fn record(&self, run: &Run<'_>, record: &str) -> String {
        let known = || self.by_record.get(record).cloned();
        (run.work_of)(record).or_else(known).unwrap_or_else(|| record.to_owned())
    }

    fn operation(&self, name: &str) -> String {
        self.operations.get(name).cloned().unwrap_or_default()
    }
}

/// The beginning of a hash, enough to tell keys apart.
pub(crate) fn short(hash: &str) -> String {
    hash.chars().take(8).collect()
}

/// The hash in a key as the store has it: `place-order#c886be2b...`.
fn hash_of(key: &str) -> Option<&str> {
    key.rsplit_once('#').map(|(_, hash)| hash).filter(|hash| hash.len() >= 32)
}

fn of_invocation(run: &Run<'_>, known: &Known, seen: &Shown<'_>) -> BTreeMap<String, Vec<Moment>> {
    let mut keys: BTreeMap<String, Vec<Moment>> = BTreeMap::new();
    let invocation = seen.invocation;
    let ended = ms(run, invocation.began + invocation.duration);
    for request in &invocation.requests {
        for item in &request.items {
            if let Some(hash) = hash_of(&item.key) {
                let moments = keys.entry(known.hash(hash)).or_default();
                moments.extend(of_request(run, request, item, moments));
            } else if item.verb != Verb::Read && item.answer == ItemAnswer::Done {
                // A write to a table of the application's own is an effect, too.
                let name = format!("{}: {}", item.table, item.key);
                let at = ms(run, request.began + request.took);
                keys.entry(name).or_default().push(moment(at, Kind::Effect, &request.operation));
            }
        }
    }
    for effect in run.effects.iter().filter(|effect| is_in(run, seen, effect.pid, effect.at)) {
        let hash = effect.key_hash.as_deref();
        let work = (run.work_of)(&effect.record);
        let name = work.or_else(|| hash.map(|hash| known.hash(hash)));
        let name = name.unwrap_or_else(|| known.record(run, &effect.record));
        // A process that was cut off may run on; any other wrote the line before it answered.
        let at = ms(run, effect.at);
        let at = if seen.is_cut_off() { at } else { at.min(ended) };
        keys.entry(name).or_default().push(moment(at, Kind::Effect, &effect.name));
    }
    for line in &invocation.records {
        let moments = keys.entry(known.record(run, &line.record)).or_default();
        moments.extend(handler(line, moments));
        moments.push(end(line, seen, ended));
    }
    // Records of which the function logged nothing: its process died, or it does not use the library.
    for (record, end) in &seen.ends {
        if !invocation.records.iter().any(|line| line.record == *record) {
            let kind = if *end == "done" { Kind::Answered } else { Kind::Returned };
            let text = format!("{end}, nothing was logged");
            keys.entry(known.record(run, record)).or_default().push(moment(ended, kind, &text));
        }
    }
    for moments in keys.values_mut() {
        for signal in run.signals.iter().filter(|signal| is_in(run, seen, signal.pid, signal.at)) {
            let text = format!("{} signal to the process", signal.kind);
            moments.push(moment(ms(run, signal.at), Kind::Fault, &text));
        }
        if seen.is_cut_off() {
            moments.push(moment(ended, Kind::Fault, &invocation.result.to_string()));
        }
        moments.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.kind.cmp(&b.kind)));
        *moments = merged(std::mem::take(moments));
    }
    keys
}

/// Makes one moment of the same fault that came again and again, as it does in an outage.
fn merged(moments: Vec<Moment>) -> Vec<Moment> {
    let mut merged: Vec<(Moment, usize)> = Vec::new();
    for moment in moments {
        match merged.last_mut() {
            Some((last, times)) if moment.kind == Kind::Fault && last.text == moment.text => {
                (last.until, *times) = (Some(moment.at), *times + 1);
            }
            _ => merged.push((moment, 1)),
        }
    }
    let counted = merged.into_iter().map(|(mut moment, times)| {
        if times > 1 {
            moment.text = format!("{}, {times} times", moment.text);
        }
        moment
    });
    counted.collect()
}

/// Whether something happened to a process while it had this invocation, or before it got the next one: lines are read
/// a little later than they are written.
fn is_in(run: &Run<'_>, seen: &Shown<'_>, pid: u32, at: Instant) -> bool {
    let begins = seen.invocation.began;
    let is_next = |other: &Shown<'_>| {
        let other = other.invocation;
        other.pid == pid && other.began > begins && other.began <= at
    };
    seen.invocation.pid == pid && at >= begins && !run.invocations.iter().any(is_next)
}

fn moment(at: f64, kind: Kind, text: &str) -> Moment {
    Moment { at, until: None, kind, text: text.to_owned() }
}

fn of_request(
    run: &Run<'_>,
    request: &StoreRequest,
    item: &ItemRequest,
    earlier: &[Moment],
) -> Option<Moment> {
    let answered = ms(run, request.began + request.took);
    if request.faulty && item.answer == ItemAnswer::Failed {
        let text = format!("{}: the store failed", request.operation);
        return Some(moment(answered, Kind::Fault, &text));
    }
    let has_claim = earlier.iter().any(|moment| moment.kind == Kind::Claim);
    let (kind, text) = match (item.verb, item.status.as_deref(), item.answer) {
        (Verb::Read, ..) => return None,
        (_, _, ItemAnswer::Refused) => (Kind::Refused, "claim refused: the key is known"),
        (_, _, ItemAnswer::Failed) => (Kind::Fault, "the store answered with an error"),
        (_, Some("COMPLETED"), _) => (Kind::Completed, "completed"),
        (_, Some("FAILED"), _) => (Kind::Failed, "failed permanently"),
        (Verb::Delete, ..) => (Kind::Released, "claim undone"),
        (_, Some(_), _) if has_claim => (Kind::Released, "claim released or renewed"),
        (_, Some(_), _) => (Kind::Claim, "claimed"),
        (_, None, _) => return None,
    };
    // A slow answer is a fault that is worth seeing, and the claim still counts.
    let text =
        if request.faulty { format!("{text} after an injected fault") } else { text.to_owned() };
    Some(moment(answered, kind, &text))
}

/// The time of the handler: from the claim on, for as long as the function says, or until the settlement.
fn handler(line: &RecordLine, moments: &[Moment]) -> Option<Moment> {
    if !line.outcome.ran() && line.outcome != Outcome::TimedOut {
        return None;
    }
    let claim = moments.iter().rfind(|moment| moment.kind == Kind::Claim)?;
    let settled = moments.iter().find(|moment| {
        moment.at > claim.at
            && matches!(moment.kind, Kind::Completed | Kind::Failed | Kind::Released)
    });
    let logged = line.ms.map(|ms| claim.at + ms);
    let until = logged.or(settled.map(|moment| moment.at))?;
    // The function's clock and this one differ a little: the handler had its effects before it ended.
    let effects =
        moments.iter().filter(|moment| moment.kind == Kind::Effect && moment.at > claim.at);
    let until = effects.map(|effect| effect.at).fold(until, f64::max);
    let until = settled.map_or(until, |settled| until.min(settled.at));
    let text = format!("handler, {:.1} ms", line.ms.unwrap_or(until - claim.at));
    Some(Moment { at: claim.at, until: Some(until), kind: Kind::Handler, text })
}

/// What became of the record in the end of the invocation.
fn end(line: &RecordLine, seen: &Shown<'_>, ended: f64) -> Moment {
    let end = seen.ends.iter().find(|(record, _)| *record == line.record);
    let end = end.map_or("done", |(_, end)| end);
    let kind = if end == "done" { Kind::Answered } else { Kind::Returned };
    let problem = line.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    moment(ended, kind, &format!("{}, {end} ({}){problem}", line.outcome, line.record))
}

fn lane(
    run: &Run<'_>,
    (invocation, end): (usize, String),
    seen: &Shown<'_>,
    moments: Vec<Moment>,
) -> Lane {
    let began = ms(run, seen.invocation.began);
    let last = moments.iter().map(|moment| moment.until.unwrap_or(moment.at));
    let ended = ms(run, seen.invocation.began + seen.invocation.duration);
    let ended = last.fold(ended, f64::max);
    let (pid, is_cut_off) = (seen.invocation.pid, seen.is_cut_off());
    Lane { invocation, pid, began, ended, is_cut_off, end, moments }
}

/// The outcomes of a key's records in an invocation, each once, and what cut the invocation off.
fn in_words(run: &Run<'_>, known: &Known, seen: &Shown<'_>, name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let own = seen.invocation.records.iter().filter(|line| known.record(run, &line.record) == name);
    let outcomes = own.map(|line| line.outcome.to_string());
    let cut_off = seen.is_cut_off().then(|| seen.invocation.result.to_string());
    for word in outcomes.chain(cut_off) {
        match words.iter_mut().find(|known| known.split(" x").next() == Some(&word)) {
            Some(known) => {
                let count = known.split_once(" x").and_then(|(_, count)| count.parse::<u32>().ok());
                *known = format!("{word} x{}", count.unwrap_or(1) + 1);
            }
            None => words.push(word),
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
    fn a_fault_that_comes_again_and_again_is_one_moment() {
        let fault = |at, text| moment(at, Kind::Fault, text);
        let moments = vec![
            moment(0.0, Kind::Claim, "claimed"),
            fault(1.0, "the store failed"),
            fault(2.0, "the store failed"),
            fault(5.0, "the store failed"),
            fault(6.0, "kill"),
        ];
        let merged = merged(moments);
        let texts: Vec<_> = merged.iter().map(|moment| moment.text.as_str()).collect();
        assert_eq!(texts, ["claimed", "the store failed, 3 times", "kill"]);
        assert_eq!((merged[1].at, merged[1].until), (1.0, Some(5.0)));
    }

    #[test]
    fn only_the_hash_of_an_idempotency_record_is_a_hash() {
        let hash = "c886be2ba0373bff539974d05cd7848f9c08ef72a07439a8b70a66f14f65e92c";
        assert_eq!(hash_of(&format!("place-order#{hash}")), Some(hash));
        assert_eq!((hash_of("o-1"), hash_of("room#7")), (None, None));
    }
}
