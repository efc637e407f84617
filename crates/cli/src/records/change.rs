//! The commands that change records: show the plan, write with `--yes`, say what was written. A change is
//! written only if the record is still the one that was shown.

use std::process::ExitCode;

use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    policy::Policy,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Store as _, Verdict, Write},
};
use serde_json::{Value, json};

use super::{
    connect::Table,
    servers,
    target::{self, AT_ONCE, Asked, Found, Keyless},
    view::{self, Entry, State, print, print_json},
};
use crate::failure::Failure;

/// The decision about a key.
#[expect(clippy::large_enum_variant, reason = "a few for each command")]
pub(crate) enum Decision {
    /// This record is to be there, or none.
    Write(Option<IdempotencyRecord>),
    /// It must not be changed, for this reason.
    Refuse(String),
    /// There is nothing to do, for this reason.
    Nothing(String),
}

impl Decision {
    pub(crate) fn refuse(why: &str) -> Self {
        Self::Refuse(why.to_owned())
    }

    pub(crate) fn nothing(why: &str) -> Self {
        Self::Nothing(why.to_owned())
    }
}

/// A key, what was found, and what is to be done.
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) found: Found,
    pub(crate) decision: Decision,
}

/// How a change ended: written or, if not, its name in JSON and why.
pub(crate) type Done = Result<(), (&'static str, String)>;

impl Change {
    /// The record that was found, if there is one that can be read.
    pub(crate) fn record(&self) -> Option<&IdempotencyRecord> {
        self.found.as_ref().ok()?.as_ref()
    }

    /// The write, under the guard that the record is the one that was found.
    fn write(&self) -> Option<Write> {
        let Decision::Write(record) = &self.decision else { return None };
        let found = self.record();
        let guard = found.map_or(Guard::Absent, |found| Guard::Unchanged(RecordVersion::of(found)));
        Some(Write::new(self.key.clone(), guard, record.clone()))
    }
}

/// Writes the changes; the result of each that has something to write, in order.
pub(crate) async fn apply(table: &Table, changes: &[Change]) -> Vec<Done> {
    let writes: Vec<_> = changes.iter().filter_map(Change::write).collect();
    let mut done = Vec::with_capacity(writes.len());
    for some in writes.chunks(AT_ONCE) {
        let verdicts = table.store.write(some, servers::deadline()).await;
        done.extend(some.iter().zip(verdicts).map(|(write, verdict)| match verdict {
            Verdict::Written => Ok(()),
            // The answer of an earlier attempt was lost: what it wrote has a token of its own, or is gone.
            Verdict::Found(found) if found == write.record => Ok(()),
            Verdict::Found(_) => Err((
                "changed-meanwhile",
                "not changed: a worker has changed the record meanwhile; look again".to_owned(),
            )),
            Verdict::EffectRefused(refused) => Err(("failed", format!("not changed: {refused}"))),
            Verdict::Unknown(error) if error.may_have_applied() => Err((
                "failed",
                format!("it is not known whether it was changed; look again: {error}"),
            )),
            Verdict::Unknown(error) => Err(("failed", format!("not changed: {error}"))),
        }));
    }
    done
}

/// The lease of a released record: in the past, but not 0, which some libraries read as "unknown".
const LAPSED: Timestamp = Timestamp::from_millis(1);

/// The record after its claim was given up in the name of its worker. `by` makes it differ from every earlier one.
///
/// If the worker did not give it up itself, its attempt counts as lost, as it would in a takeover: it may have had its
/// effect, so the next handler has to be told, and it may have killed its process, so it stays in quarantine.
pub(crate) fn given_up(found: &IdempotencyRecord, by: Owner) -> IdempotencyRecord {
    let lost = u32::from(found.status == Status::InProgress && !found.is_given_up());
    let mut record = found.clone();
    record.status = Status::InProgress;
    record.lost_attempts = found.lost_attempts.saturating_add(lost);
    record.consecutive_losses = found.consecutive_losses.saturating_add(lost);
    record.owner = None;
    record.last_owner = Some(by);
    record.lease_until = Some(LAPSED);
    record
}

/// The rest of a record whose work is to begin from the beginning: nothing, or, if attempts were lost or steps are
/// finished, a released record that tells the next handler of them.
pub(crate) fn reset(
    found: &IdempotencyRecord,
    now: Timestamp,
    by: Owner,
) -> Option<IdempotencyRecord> {
    let mut record = given_up(found, by);
    if record.lost_attempts == 0 && record.steps.is_none() {
        return None;
    }
    record.failed_attempts = 0;
    record.error_type = None;
    record.result = None;
    // The next delivery brings the payload again, maybe under another key. A recovery would do the work of this one as well.
    record.payload = None;
    record.expires_at =
        record.expires_at.max(now.plus(Policy::default().retention).ceil_to_second());
    Some(record)
}

pub(crate) struct Verb {
    /// `freed`
    pub(crate) done: &'static str,
    /// `free`
    pub(crate) plan: &'static str,
    /// The note that is shown after it.
    pub(crate) note: &'static str,
}

/// Reads the records of keys, decides, and writes with `yes`. Records of events that have no key are named.
pub(crate) async fn run(
    table: &Table,
    (asked, keyless): (Vec<Asked>, Vec<Keyless>),
    verb: &Verb,
    yes: bool,
    as_json: bool,
    decide: impl Fn(&Asked, Option<&IdempotencyRecord>, Timestamp) -> Decision,
) -> Result<ExitCode, Failure> {
    let found = target::look_up(table, &asked).await?;
    let now = table.now();
    let change = |(asked, found): (Asked, target::Found)| {
        let decision = match &found {
            Ok(record) => decide(&asked, record.as_ref(), now),
            Err(error) => Decision::Refuse(error.to_string()),
        };
        Change { decision, key: asked.key, found }
    };
    let changes: Vec<_> = asked.into_iter().zip(found).map(change).collect();
    let done = if yes { apply(table, &changes).await } else { Vec::new() };
    let shown = shown(&changes, done, verb, yes);
    let is_refused = !keyless.is_empty() || shown.iter().any(|(_, result)| result.is_failure);
    let is_written = changes.iter().any(|change| matches!(change.decision, Decision::Write(_)));
    if as_json {
        let records = shown.iter().map(|(change, result)| document(change, result, now));
        let keyless = keyless.iter().map(|Keyless { record, why }| {
            json!({ "key": null, "record": record, "state": null, "result": "refused", "message": why })
        });
        print_json(
            &json!({ "dry_run": !yes, "records": records.chain(keyless).collect::<Vec<_>>() }),
        )?;
    } else {
        let mut page = String::new();
        for (change, result) in &shown {
            page.push_str(&entry_text(change, now));
            view::push_line(&mut page, format_args!("  -> {}", result.text));
            page.push('\n');
        }
        for Keyless { record, why } in &keyless {
            view::push_line(&mut page, format_args!("{record}"));
            view::push_line(&mut page, format_args!("  no key"));
            view::push_line(&mut page, format_args!("  -> refused: {why}"));
            page.push('\n');
        }
        if is_written && !yes {
            page.push_str("Nothing was changed: add --yes to do it.\n");
        }
        if is_written {
            page.push_str(verb.note);
        }
        print(&page)?;
    }
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The result of a change, in words.
struct Said {
    text: String,
    /// Its name in JSON.
    name: &'static str,
    is_failure: bool,
}

fn shown<'c>(
    changes: &'c [Change],
    done: Vec<Done>,
    verb: &Verb,
    yes: bool,
) -> Vec<(&'c Change, Said)> {
    let mut done = done.into_iter();
    let said = |change: &'c Change| {
        let (text, name, is_failure) = match &change.decision {
            Decision::Refuse(why) => (format!("refused: {why}"), "refused", true),
            Decision::Nothing(why) => (format!("nothing to do: {why}"), "nothing", false),
            Decision::Write(to) if !yes => {
                (format!("to {}{}", verb.plan, losses(change, to.as_ref())), "planned", false)
            }
            Decision::Write(to) => match done.next() {
                Some(Ok(())) => {
                    (format!("{}{}", verb.done, losses(change, to.as_ref())), "done", false)
                }
                Some(Err((name, text))) => (text, name, true),
                None => ("not changed: the store did not answer".to_owned(), "failed", true),
            },
        };
        (change, Said { text, name, is_failure })
    };
    changes.iter().map(said).collect()
}

/// The effect of the write on the lost attempts of the key, which may have had their effects.
fn losses(change: &Change, to: Option<&IdempotencyRecord>) -> String {
    match to {
        Some(record) if record.status == Status::InProgress && record.lost_attempts > 0 => {
            format!(", and its handler is told of lost attempts ({})", record.lost_attempts)
        }
        None if change.record().is_some_and(has_losses) => {
            ", and its handler is not told that attempts were lost: check that they had no effect"
                .to_owned()
        }
        None if change.record().is_some_and(|record| record.steps.is_some()) => {
            ", and the steps that its handler has finished run again".to_owned()
        }
        _ => String::new(),
    }
}

fn has_losses(record: &IdempotencyRecord) -> bool {
    let is_lost = record.status == Status::InProgress && !record.is_given_up();
    record.status != Status::Completed && (is_lost || record.lost_attempts > 0)
}

fn entry_text(change: &Change, now: Timestamp) -> String {
    let entry = |found| Entry { key: change.key.clone(), found };
    match &change.found {
        Ok(Some(found)) => view::text(&entry(Ok(found.clone())), now, false),
        Ok(None) => view::absent(&change.key, "no record"),
        Err(error) => view::text(&entry(Err(error.clone())), now, false),
    }
}

fn document(change: &Change, said: &Said, now: Timestamp) -> Value {
    let state = match &change.found {
        Ok(found) => found.as_ref().map(|found| State::of(found, now).name()),
        Err(_) => Some(State::Unreadable.name()),
    };
    json!({
        "key": change.key.as_str(),
        "state": state,
        "result": said.name,
        "message": said.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_keeps_finished_steps_and_lost_attempts_and_else_nothing() {
        let now = Timestamp::from_secs(1000);
        let by = Owner::from_bits(7);
        let mut failed = IdempotencyRecord::new(Status::PermanentlyFailed, now);
        failed.failed_attempts = 3;
        failed.error_type = Some("payments::Declined".into());
        assert!(reset(&failed, now, by).is_none());
        let mut steps = failed.clone();
        (steps.steps, steps.payload) = (Some("{}".into()), Some("{}".into()));
        let kept = reset(&steps, now, by).unwrap();
        assert_eq!((kept.steps, kept.failed_attempts, kept.error_type), (steps.steps, 0, None));
        assert_eq!(kept.payload, None, "a recovery would do the work beside its next delivery");
        let mut lost = failed;
        lost.lost_attempts = 2;
        assert_eq!(reset(&lost, now, by).unwrap().lost_attempts, 2);
    }
}
