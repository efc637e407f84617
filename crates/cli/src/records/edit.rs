//! What commands that change records have in common: show the plan, write with `--yes`, say what was written.

use std::process::ExitCode;

use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock, Timestamp},
    key::Key,
    record::IdempotencyRecord,
};
use serde_json::{Value, json};

use super::{
    change::{Change, Decision, Done, apply},
    connect::Table,
    print, print_json,
    state::State,
    target,
    view::{self, Entry},
};
use crate::failure::Failure;

/// What a command does with a record.
pub(crate) struct Verb {
    /// `evicted`
    pub(crate) done: &'static str,
    /// `evict`
    pub(crate) plan: &'static str,
    /// What to know after it.
    pub(crate) note: &'static str,
}

/// How long processes may answer from memory what was evicted.
pub(crate) const WARM_CACHES: &str = "Processes that saw a key completed answer it from memory for up to 60 seconds \
     more (`Idempotency::with_cache`).";

/// Reads the records of `keys`, decides, and writes if `yes`.
pub(crate) async fn run(
    table: &Table,
    keys: Vec<Key>,
    verb: &Verb,
    yes: bool,
    as_json: bool,
    decide: impl Fn(Option<&IdempotencyRecord>, Timestamp) -> Decision,
) -> Result<ExitCode, Failure> {
    let found = target::look_up(table, &keys).await?;
    let now = SystemClock.now();
    let changes: Vec<_> = keys
        .into_iter()
        .zip(found)
        .map(|(key, found)| Change { decision: decide(found.as_ref(), now), key, found })
        .collect();
    let done = if yes { apply(table, &changes).await } else { Vec::new() };
    let shown = shown(&changes, done, verb, yes);
    let is_refused = shown.iter().any(|(_, result)| result.is_failure);
    let is_written = changes.iter().any(|change| matches!(change.decision, Decision::Write(_)));
    if as_json {
        let records = shown.iter().map(|(change, result)| document(change, result, now));
        print_json(&json!({ "dry_run": !yes, "records": records.collect::<Vec<_>>() }));
    } else {
        let mut page = String::new();
        for (change, result) in &shown {
            page.push_str(&entry_text(change, now));
            page.push_str(&format!("  -> {}\n\n", result.text));
        }
        if is_written && !yes {
            page.push_str("Nothing was changed: add --yes to do it.\n");
        }
        if is_written {
            page.push_str(verb.note);
        }
        print(&page);
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
            Decision::Write(_) if !yes => (format!("to {}", verb.plan), "planned", false),
            Decision::Write(_) => match done.next() {
                Some(Done::Written) => (verb.done.to_owned(), "done", false),
                Some(Done::Changed) => (
                    "not changed: a worker has changed the record meanwhile; look again".to_owned(),
                    "changed-meanwhile",
                    true,
                ),
                Some(Done::Unknown(error)) => (format!("not changed: {error}"), "failed", true),
                None => ("not changed: the store did not answer".to_owned(), "failed", true),
            },
        };
        (change, Said { text, name, is_failure })
    };
    changes.iter().map(said).collect()
}

fn entry_text(change: &Change, now: Timestamp) -> String {
    match &change.found {
        Some(found) => {
            let entry = Entry { key: change.key.clone(), found: Ok(found.clone()) };
            view::text(&entry, now, false)
        }
        None => format!("{}\n  no record\n", change.key.as_str()),
    }
}

fn document(change: &Change, said: &Said, now: Timestamp) -> Value {
    let state = change.found.as_ref().map(|found| State::of(found, now).name());
    json!({
        "key": change.key.as_str(),
        "state": state,
        "result": said.name,
        "message": said.text,
    })
}
