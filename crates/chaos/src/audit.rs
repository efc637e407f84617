//! The audit: whether the run kept the documented guarantees.
//!
//! A second effect is accepted only with a cause that was observed on the execution itself: its process
//! was killed before it logged a completion, the rig stopped it, it missed its deadline, or it logged
//! that its completion was lost. At most one execution of an order that had an effect may lack
//! such a cause.
//!
//! Where effects are in the transaction that completes their key, nothing is accepted: an order is placed once, and
//! exactly if its key is completed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use lambda_idempotency_local::Outcome;

use crate::{
    findings::{Cause, Findings},
    history::{Attempt, Effect, End, History, Offence, OrderHistory},
    kinds::Mode,
    schedule::{self, Schedule},
    store::Row,
};

/// Checks the history against the store's final records and the number of messages left.
pub(crate) fn audit(expected: &Expected, history: &History, rows: &[Row], left: usize) -> Findings {
    let mut findings = Findings::default();
    for (offence, what) in &history.offences {
        findings.violate(*offence, what.clone(), Vec::new());
    }
    if left > 0 {
        let what = format!("{left} message(s) neither acknowledged nor dead-lettered");
        findings.violate(Offence::Stuck, what, Vec::new());
    }
    for (number, order) in &history.orders {
        findings.effects += order.effects.max(order.placed);
        effects(&mut findings, expected, history, *number, order);
    }
    order(&mut findings, expected, history);
    store(&mut findings, expected, history, rows);
    findings
}

/// Where the source keeps an order, the first effects of the orders of a group come in the order in which their first
/// messages were sent.
fn order(findings: &mut Findings, expected: &Expected, history: &History) {
    // The latest first effect of each group so far.
    let mut latest: HashMap<usize, (u64, usize)> = HashMap::new();
    let mut seen = HashSet::new();
    for number in expected.sequence.iter().copied() {
        let Some(group) = expected.orders.get(number).and_then(|order| order.group) else {
            continue;
        };
        let Some(known) = history.orders.get(&number).filter(|_| seen.insert(number)) else {
            continue;
        };
        let attempts = history.attempts_of(known);
        let effects = attempts.flat_map(|attempt| attempt.effects.iter().map(|effect| effect.at));
        let Some(first) = effects.min() else { continue };
        let before = latest.entry(group).or_insert((first, number));
        if first < before.0 {
            let what = format!(
                "{}: its first effect came before that of {}, which is before it in its group",
                schedule::id(number),
                schedule::id(before.1)
            );
            findings.violate(Offence::OutOfOrder, what, trace(history, known));
        } else {
            *before = (first, number);
        }
    }
}

fn effects(
    findings: &mut Findings,
    expected: &Expected,
    history: &History,
    number: usize,
    order: &OrderHistory,
) {
    let mode = expected.mode;
    if mode.commits() {
        committed(findings, history, number, order);
        return ran_again(findings, mode, history, number, order);
    }
    let trace = || trace(history, order);
    let attempts = || history.attempts_of(order);
    let name = schedule::id(number);
    let effects: BTreeSet<&str> = attempts()
        .flat_map(|attempt| &attempt.effects)
        .map(|effect| effect.name.as_str())
        .collect();
    for effect in effects {
        let mut own = Vec::new();
        for attempt in attempts() {
            let times = attempt.effects.iter().filter(|happened| happened.name == effect).count();
            own.extend(std::iter::repeat_n(attempt, times));
            if times > 1 {
                let what = format!(
                    "{name}: two effects `{effect}` of one execution in process {}; give each a name of its own",
                    attempt.pid
                );
                findings.violate(Offence::Ledger, what, trace());
            }
        }
        let causes: Vec<Option<Cause>> =
            own.iter().map(|attempt| cause(history, expected, attempt)).collect();
        let mut doubled = causes.len().saturating_sub(1);
        for cause in causes.iter().flatten().take(doubled) {
            *findings.doubled.entry(*cause).or_default() += 1;
            doubled -= 1;
        }
        if doubled > 0 {
            let what =
                format!("{name}: {effect} {} times, {doubled} without a cause", causes.len());
            findings.violate_times(Offence::Doubled, doubled as u64, what, trace());
        }
        findings.stale += stale(attempts(), effect);
    }
    kept(findings, history, number, order);
    ran_again(findings, mode, history, number, order);
    let mut fences: Vec<u64> = attempts()
        .filter(|attempt| !attempt.effects.is_empty())
        .map(|attempt| attempt.fence)
        // A function that does not use the library has no fences.
        .filter(|fence| *fence > 0)
        .collect();
    fences.sort_unstable();
    if fences.windows(2).any(|pair| pair.first() == pair.last()) {
        findings.violate(Offence::Fence, format!("{name}: two executions, one fence"), trace());
    }
}

/// The effects of an order that are in transactions: one, whatever happened.
fn committed(findings: &mut Findings, history: &History, number: usize, order: &OrderHistory) {
    let name = schedule::id(number);
    let OrderHistory { placed, effects, .. } = order;
    if let doubled @ 1.. = (*placed).max(*effects).saturating_sub(1) {
        let what = format!("{name}: placed {placed} times, by {effects} executions");
        findings.violate_times(Offence::Doubled, doubled, what, trace(history, order));
    } else if placed != effects {
        let what = format!("{name}: placed {placed} times, but by {effects} executions");
        findings.violate(Offence::Ledger, what, trace(history, order));
    }
    for attempt in history.attempts_of(order) {
        findings.not_committed += u64::from(attempt.collected && attempt.effects.is_empty());
    }
}

/// No attempt repeats a step that was recorded when it began. An older attempt may: it was stopped, and has lost its key.
fn kept(findings: &mut Findings, history: &History, number: usize, order: &OrderHistory) {
    let attempts = || history.attempts_of(order);
    let answered = |a: &&Attempt| a.kept.is_some() && a.effects.is_empty();
    findings.answered_steps += attempts().filter(answered).count() as u64;
    let Some((kept, fence)) = attempts().filter_map(|a| Some((a.kept?, a.fence))).min() else {
        return;
    };
    let repeats = attempts().filter(|attempt| attempt.fence > fence);
    let repeats = repeats.flat_map(|attempt| &attempt.effects).filter(|effect| effect.at > kept);
    if let times @ 1.. = repeats.count() {
        let what = format!("{}: a recorded step ran again", schedule::id(number));
        findings.violate_times(Offence::Doubled, times as u64, what, trace(history, order));
    }
}

fn ran_again(
    findings: &mut Findings,
    mode: Mode,
    history: &History,
    number: usize,
    order: &OrderHistory,
) {
    // A process that was stopped between claim and start may start after a successor's completion; its claim,
    // and so its fence, is older than the completion's.
    let ran_again = |attempt: &&Attempt| {
        order.completed.is_some_and(|done| {
            let older = attempt.fence < done.fence && late(history, attempt).is_some();
            attempt.started > done.known && !older
        })
    };
    let mut attempts = history.attempts_of(order);
    if mode == Mode::Optimistic {
        // Promised is only that nothing of it is applied, and `committed` looks at that.
        findings.ran_again += attempts.filter(ran_again).count() as u64;
    } else if attempts.any(|attempt| ran_again(&attempt)) {
        let what = format!("{}: ran again after it was completed", schedule::id(number));
        findings.violate(Offence::RanAgain, what, trace(history, order));
    }
}

/// How many effects came after one with a higher fence: a system that compares fences refuses those.
fn stale<'a>(attempts: impl Iterator<Item = &'a Attempt>, name: &str) -> u64 {
    let of = |effect: &&Effect| effect.name == name;
    let effects =
        attempts.flat_map(|a| a.effects.iter().filter(of).map(|effect| (effect.at, a.fence)));
    let in_time: BTreeMap<u64, u64> = effects.collect();
    let (mut highest, mut stale) = (0, 0);
    for fence in in_time.into_values() {
        stale += u64::from(fence < highest);
        highest = highest.max(fence);
    }
    stale
}

/// The accepted cause why this execution had its effect but may not have completed its key.
fn cause(history: &History, expected: &Expected, attempt: &Attempt) -> Option<Cause> {
    let is_in_step = expected.mode == Mode::Steps;
    let invocation = history.invocations.get(attempt.invocation?)?;
    match (invocation.logged.get(&attempt.message), &invocation.end) {
        (Some(Outcome::CompletionLost), _) => Some(Cause::CompletionLost),
        (Some(Outcome::TimedOut), _) => Some(Cause::Cancelled),
        // Only a process that was stopped or missed its deadline may lose its lease.
        (Some(Outcome::Fenced | Outcome::Superseded), _) => late(history, attempt),
        (Some(Outcome::Failed), _) if is_in_step && attempt.kept.is_none() => {
            Some(Cause::StepNotKept)
        }
        (Some(Outcome::Failed), _) if expected.is_users => Some(Cause::HandlerFailed),
        (Some(_), _) => None,
        (None, End::Killed) => Some(Cause::Killed),
        (None, End::TimedOut) => late(history, attempt),
        (None, End::Answered | End::Crashed) => None,
    }
}

/// Why this execution may have continued after its lease expired.
fn late(history: &History, attempt: &Attempt) -> Option<Cause> {
    let invocation = history.invocations.get(attempt.invocation?)?;
    match (invocation.stopped, invocation.overran) {
        (true, _) => Some(Cause::Stopped),
        (_, true) => Some(Cause::Overran),
        _ => None,
    }
}

/// At the end every order that was sent is completed or permanently failed, and the store has
/// no other keys.
fn store(findings: &mut Findings, expected: &Expected, history: &History, rows: &[Row]) {
    let mut records: HashMap<String, String> = HashMap::new();
    for Row { key, status, .. } in rows {
        let hash = key.rsplit('#').next().unwrap_or_default().to_owned();
        records.insert(hash, status.clone());
    }
    let hashes: HashSet<&String> =
        history.orders.values().flat_map(|order| &order.hashes).collect();
    let mut keys = HashMap::new();
    for (number, order) in expected.orders.iter().enumerate() {
        let name = schedule::id(number);
        let Some(known) = history.orders.get(&number) else {
            if order.is_sent {
                let what = format!("{name}: was never delivered");
                findings.violate(Offence::Store, what, Vec::new());
            }
            continue;
        };
        let trace = || trace(history, known);
        // Without the library, or where its policy allows that, a function works without a key.
        if expected.is_users && known.hashes.is_empty() {
            continue;
        }
        let mut own = known.hashes.iter();
        let (Some(hash), None) = (own.next(), own.next()) else {
            let what = format!("{name}: has {} keys", known.hashes.len());
            findings.violate(Offence::Store, what, trace());
            continue;
        };
        if let Some(other) = keys.insert(hash, number) {
            let what = format!("{name}: has the key of {}", schedule::id(other));
            findings.violate(Offence::Store, what, trace());
        }
        let due = if order.is_doomed { "FAILED" } else { "COMPLETED" };
        match records.get(hash).map(String::as_str) {
            Some(status) if status == due => {
                let is_placed = history.is_placed(number);
                if expected.mode.commits() && is_placed == order.is_doomed {
                    let (offence, but) = match is_placed {
                        true => (Offence::Store, "placed"),
                        false => (Offence::Lost, "not placed"),
                    };
                    findings.violate(offence, format!("{name}: {status}, but {but}"), trace());
                }
            }
            Some("INPROGRESS") => {
                findings.violate(Offence::Stuck, format!("{name}: is still held"), trace());
            }
            found => {
                let found = found.unwrap_or("no record");
                let what = format!("{name}: {found} in the store instead of {due}");
                findings.violate(Offence::Store, what, trace());
            }
        }
    }
    let unknown = records.keys().filter(|hash| !hashes.contains(hash)).count();
    if unknown > 0 {
        let what = format!("{unknown} record(s) whose keys the function never logged");
        findings.violate(Offence::Store, what, Vec::new());
    }
}

/// One line for each execution of an order.
fn trace(history: &History, order: &OrderHistory) -> Vec<String> {
    let attempts = history.attempts_of(order);
    let line = |attempt: &Attempt| {
        let invocation = attempt.invocation.and_then(|index| history.invocations.get(index));
        let end = invocation.map_or_else(
            || "its invocation is unknown".to_owned(),
            |ended| {
                let logged = ended.logged.get(&attempt.message).map_or("nothing", Outcome::as_str);
                let stopped = if ended.stopped { ", stopped" } else { "" };
                format!("{:?}{stopped}, logged {logged}", ended.end)
            },
        );
        let Attempt { message, pid, fence, started, .. } = attempt;
        let effects: Vec<u64> = attempt.effects.iter().map(|effect| effect.at).collect();
        format!(
            "{message} in process {pid}: fence {fence}, start {started}, effects {effects:?}, {end}"
        )
    };
    attempts.map(line).collect()
}

/// The messages of a run, and what they ask for.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    /// How effects and completions are kept together.
    pub(crate) mode: Mode,
    /// Whether the function is a user's own: it may work without keys, without the library even, and fail after its effect.
    pub(crate) is_users: bool,
    pub(crate) orders: Vec<ExpectedOrder>,
    /// The order of each message, in the order in which they were sent.
    pub(crate) sequence: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedOrder {
    /// One of its messages was sent: a run that is given up sends no more.
    pub(crate) is_sent: bool,
    /// It fails permanently.
    pub(crate) is_doomed: bool,
    /// Its message group or shard, where its source keeps an order.
    pub(crate) group: Option<usize>,
}

impl From<&Schedule> for Expected {
    fn from(schedule: &Schedule) -> Self {
        let keeps_order = schedule.origin().keeps_order();
        let orders = schedule.orders.iter().enumerate().map(|(number, order)| ExpectedOrder {
            is_sent: true,
            is_doomed: order.is_doomed(),
            group: keeps_order.then(|| schedule.group(number)),
        });
        Self {
            mode: schedule.mode,
            is_users: schedule.is_of_a_users_function(),
            orders: orders.collect(),
            sequence: schedule.messages.iter().map(|message| message.order).collect(),
        }
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
