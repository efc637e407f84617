//! What commands that change records have in common: show the plan, write with `--yes`, say what was written.

use std::process::ExitCode;

use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};
use serde_json::{Value, json};

use super::{
    change::{Change, Decision, Done, apply},
    connect::Table,
    print, print_json,
    state::State,
    target::{self, Asked, Keyless},
    view::{self, Entry},
};
use crate::failure::Failure;

pub(crate) struct Verb {
    /// `evicted`
    pub(crate) done: &'static str,
    /// `evict`
    pub(crate) plan: &'static str,
    /// What to know after it.
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

/// What became of a change, in words.
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

/// What the write does with the lost attempts of the key, which may have had their effects.
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
