//! What was observed of each key in one invocation: its requests to the store, its effects and its outcome.

use std::collections::BTreeMap;
use std::time::Instant;

use lambda_idempotency_local::{
    Disposition, ItemAnswer, ItemRequest, Outcome, RecordLine, StoreRequest, Verb,
};

use super::moment::{Kind, Moment, merged};
use super::names::Names;
use super::run::{Run, is_cut_off};
use super::story::StoryInvocation;

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
            let kind = if *end == Disposition::Done { Kind::Answered } else { Kind::Returned };
            let text = format!("{end}, nothing was logged");
            keys.entry(names.of_record(record)).or_default().push(Moment::new(ended, kind, &text));
        }
    }
    for moments in keys.values_mut() {
        if is_cut_off(seen) {
            moments.push(Moment::new(ended, Kind::Fault, &invocation.result.to_string()));
        }
        moments.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.kind.cmp(&b.kind)));
        *moments = merged(std::mem::take(moments));
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
    if request.faulty && item.answer == ItemAnswer::Failed {
        let text = format!("{}: the store failed", request.operation);
        return Some(Moment::new(answered, Kind::Fault, &text));
    }
    let has_claim = earlier.iter().any(|moment| moment.kind == Kind::Claim);
    let (kind, text) = match (item.verb, item.status.as_deref(), item.answer) {
        (Verb::Read | Verb::Check, ..) => return None,
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
    Some(Moment::new(answered, kind, &text))
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

/// What became of the record in the end of the invocation.
fn end(line: &RecordLine, seen: &StoryInvocation, ended: f64) -> Moment {
    let end = seen.messages.iter().find(|(record, _)| *record == line.record);
    let end = end.map_or(Disposition::Done, |(_, end)| *end);
    let kind = if end == Disposition::Done { Kind::Answered } else { Kind::Returned };
    let problem = line.problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    Moment::new(ended, kind, &format!("{}, {end} ({}){problem}", line.outcome, line.record))
}
