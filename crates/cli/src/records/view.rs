//! A record as text and as JSON, and what it means for the next delivery. Results and bodies of messages are left out
//! unless they were asked for.

use std::{
    fmt::{self, Write as _},
    io,
};

use clap::ValueEnum;
use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    outbox::{OutboxError, messages},
    policy::Policy,
    record::{IdempotencyRecord, Provenance, Status},
    store::StoreError,
};
use serde_json::{Value, json};

use super::clock;
use crate::terminal;

/// A key and what was found under it.
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) found: Result<IdempotencyRecord, StoreError>,
}

impl Entry {
    pub(crate) fn state(&self, now: Timestamp) -> State {
        self.found.as_ref().map_or(State::Unreadable, |record| State::of(record, now))
    }

    /// Whether the record has messages that are not known to be sent.
    pub(crate) fn is_unsent(&self) -> bool {
        self.found.as_ref().is_ok_and(|record| record.outbox.is_some())
    }

    /// The name of the operation, which is in the key before the first `#`. Keys of other libraries have
    /// their prefix there.
    pub(crate) fn operation(&self) -> &str {
        operation(&self.key)
    }
}

pub(crate) fn operation(key: &Key) -> &str {
    key.as_str().split_once('#').map_or("", |(operation, _)| operation)
}

/// Adds a line. Keys and names in it come from the table, and none of them ends it: what comes behind would look like
/// another record.
pub(crate) fn push_line(out: &mut String, line: fmt::Arguments<'_>) {
    let line = line.to_string();
    out.extend(line.chars().map(|letter| if letter == '\n' { '\u{fffd}' } else { letter }));
    out.push('\n');
}

/// A few lines about a record.
pub(crate) fn text(entry: &Entry, now: Timestamp, show_result: bool) -> String {
    let mut out = String::new();
    push_line(&mut out, format_args!("{}", entry.key.as_str()));
    let state = entry.state(now);
    let record = match &entry.found {
        Ok(record) => record,
        Err(error) => {
            push_line(&mut out, format_args!("  {error}"));
            return out;
        }
    };
    let next = match state {
        State::Completed if record.outbox.is_some() => {
            "the next delivery sends its messages, and is answered from it"
        }
        state => state.next(),
    };
    push_line(&mut out, format_args!("  {}: {next}", state.words()));
    let lease = record.lease_until.filter(|_| matches!(state, State::InProgress | State::Lapsed));
    if let Some(until) = lease {
        let ends = if until > now { "lease ends" } else { "lease ended" };
        push_line(&mut out, format_args!("  {ends} {}", clock::relative(until, now)));
    }
    if let Some(attempts) = attempts(record) {
        push_line(&mut out, format_args!("  {attempts}"));
    }
    if let Some(provenance) = &record.provenance {
        push_line(&mut out, format_args!("  {}", claimed(provenance, now)));
        if let Some(stream) = &provenance.worker.log_stream {
            push_line(&mut out, format_args!("  log stream {stream}"));
        }
    }
    if let Some(application) = &record.application {
        push_line(&mut out, format_args!("  application {application}"));
    }
    let expires = if record.expires_at > now { "expires" } else { "expired" };
    let at = clock::instant(record.expires_at);
    push_line(
        &mut out,
        format_args!("  {expires} {} ({at})", clock::relative(record.expires_at, now)),
    );
    if let Some(steps) = &record.steps {
        let said = match names(steps) {
            Some(names) => {
                format!("  finished steps, which no attempt repeats: {}", names.join(", "))
            }
            None => format!("  finished steps of {} bytes, which are encrypted", steps.len()),
        };
        push_line(&mut out, format_args!("{said}"));
        if show_result {
            push_line(&mut out, format_args!("    {}", &**steps));
        }
    }
    out.push_str(&unsent_text(&entry.key, record, show_result));
    match &record.result {
        Some(result) if show_result => {
            push_line(&mut out, format_args!("  result {}", &**result));
        }
        Some(result) => {
            push_line(
                &mut out,
                format_args!("  result of {} bytes (--show-result shows it)", result.len()),
            );
        }
        None => {}
    }
    out
}

/// The lines about a key without a record.
pub(crate) fn absent(key: &Key, why: &str) -> String {
    let mut out = String::new();
    push_line(&mut out, format_args!("{}", key.as_str()));
    push_line(&mut out, format_args!("  {why}"));
    out
}

fn lease_until(record: &IdempotencyRecord) -> Option<Timestamp> {
    record.lease_until.filter(|_| record.status == Status::InProgress)
}

/// The attempts so far, if there is something to say.
fn attempts(record: &IdempotencyRecord) -> Option<String> {
    let mut parts = Vec::new();
    if record.failed_attempts > 0 {
        parts.push(format!("failed attempts: {}", record.failed_attempts));
    }
    if record.lost_attempts > 0 {
        parts.push(format!("lost attempts: {}", record.lost_attempts));
    }
    if let Some(error_type) = &record.error_type {
        parts.push(format!("last error: {error_type}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The names of finished steps, if their text is not encrypted.
fn names(steps: &str) -> Option<Vec<String>> {
    let steps: serde_json::Map<String, Value> = serde_json::from_str(steps).ok()?;
    Some(steps.into_iter().map(|(name, _)| name).collect())
}

/// When the key was claimed, and by whom.
fn claimed(provenance: &Provenance, now: Timestamp) -> String {
    let Provenance { claimed_at, worker, source, record, .. } = provenance;
    let mut out = format!("claimed {}", clock::relative(*claimed_at, now));
    if let Some(function) = &worker.function {
        let _ = write!(out, " by {function}");
    }
    if let Some(version) = &worker.version {
        let _ = write!(out, " (version {version})");
    }
    if let Some(request_id) = &worker.request_id {
        let _ = write!(out, ", request {request_id}");
    }
    if let (Some(source), Some(record)) = (source, record) {
        let _ = write!(out, ", {source} record {record}");
    }
    out
}

pub(crate) fn json(entry: &Entry, now: Timestamp, show_result: bool) -> Value {
    let state = entry.state(now).name();
    let mut out = json!({
        "key": entry.key.as_str(),
        "operation": entry.operation(),
        "state": state,
    });
    let more = match &entry.found {
        Err(error) => json!({ "problem": error.to_string() }),
        Ok(record) => json!({
            "failed_attempts": record.failed_attempts,
            "lost_attempts": record.lost_attempts,
            "consecutive_losses": record.consecutive_losses,
            "fence": record.fence,
            "lease_until": lease_until(record).map(clock::instant),
            "settled_at": record.settled_at().map(clock::instant),
            "expires_at": clock::instant(record.expires_at),
            "error_type": record.error_type.as_deref(),
            "application": record.application.as_deref(),
            "result_bytes": record.result.as_deref().map(str::len),
            "result": record.result.as_deref().filter(|_| show_result),
            "steps": record.steps.as_deref().map(|steps| json!({
                "names": names(steps),
                "bytes": steps.len(),
                "results": show_result.then_some(steps),
            })),
            "unsent": unsent_json(&entry.key, record, show_result),
            "provenance": record.provenance.as_ref().map(provenance),
        }),
    };
    if let (Value::Object(out), Value::Object(more)) = (&mut out, more) {
        out.extend(more);
    }
    out
}

fn provenance(provenance: &Provenance) -> Value {
    let Provenance { claimed_at, worker, source, record, .. } = provenance;
    json!({
        "claimed_at": clock::instant(*claimed_at),
        "request_id": worker.request_id.as_deref(),
        "function": worker.function.as_deref(),
        "version": worker.version.as_deref(),
        "log_stream": worker.log_stream.as_deref(),
        "source": source.as_deref(),
        "record": record.as_deref(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum State {
    /// A worker holds the key, or has left it held until its lease ends
    InProgress,
    /// The lease has ended without a word from the worker: the next delivery takes the key over
    Lapsed,
    /// The last attempt failed and gave the key up: the next delivery tries again
    Released,
    /// The work is done
    Completed,
    /// The work failed permanently and is not tried again
    Failed,
    /// The record is over: the next delivery is new work
    Expired,
    /// The item is not an idempotency record
    Unreadable,
}

impl State {
    /// The state of a record at this time.
    pub(crate) fn of(record: &IdempotencyRecord, now: Timestamp) -> Self {
        let skew = Policy::default().clock_skew;
        let held_until = record.lease_until.unwrap_or(record.expires_at).plus(skew);
        let is_over = now > record.expires_at.plus(skew);
        match record.status {
            Status::InProgress if now <= held_until => Self::InProgress,
            _ if is_over => Self::Expired,
            Status::InProgress if record.is_given_up() => Self::Released,
            Status::InProgress => Self::Lapsed,
            Status::Completed => Self::Completed,
            Status::PermanentlyFailed => Self::Failed,
        }
    }

    /// Its name in arguments and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in-progress",
            Self::Lapsed => "lapsed",
            Self::Released => "released",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Unreadable => "unreadable",
        }
    }

    /// Its name in a sentence.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::InProgress => "in progress",
            Self::Failed => "permanently failed",
            other => other.name(),
        }
    }

    /// The fate of the next delivery of the key.
    pub(crate) const fn next(self) -> &'static str {
        match self {
            Self::InProgress => "the next delivery waits, or returns to its source",
            Self::Lapsed => "the next delivery takes the key over",
            Self::Released => "the next delivery tries again",
            Self::Completed => "later deliveries are answered from it",
            Self::Failed => "later deliveries are not tried",
            Self::Expired => "the next delivery is new work",
            Self::Unreadable => "deliveries of this key fail",
        }
    }
}

fn unsent_text(key: &Key, record: &IdempotencyRecord, shows_bodies: bool) -> String {
    let Some(outbox) = &record.outbox else { return String::new() };
    let Ok(messages) = messages(key, record) else {
        return format!(
            "  unsent messages of {} bytes, which are encrypted or of a newer version: the next delivery or a relay \
             sends them\n",
            outbox.len()
        );
    };
    let count = messages.len();
    let mut out = format!("  unsent messages: {count}; the next delivery or a relay sends them\n");
    for message in &messages {
        let (to, id) = (message.message().destination(), message.id());
        push_line(&mut out, format_args!("    to {to}, id {id}"));
        if shows_bodies {
            push_line(&mut out, format_args!("      {}", message.message().body()));
        }
    }
    out
}

/// The same as JSON: `null` if there are none.
fn unsent_json(key: &Key, record: &IdempotencyRecord, shows_bodies: bool) -> Value {
    let Some(outbox) = &record.outbox else { return Value::Null };
    match messages(key, record) {
        Err(OutboxError) => json!({ "count": null, "bytes": outbox.len() }),
        Ok(messages) => {
            let shown = messages.iter().map(|message| {
                json!({
                    "id": message.id(),
                    "destination": message.message().destination(),
                    "body_bytes": message.message().body().len(),
                    "body": shows_bodies.then(|| message.message().body()),
                })
            });
            let shown: Vec<_> = shown.collect();
            json!({ "count": shown.len(), "messages": shown })
        }
    }
}

/// Prints a page. Keys and names in it come from the table.
pub(crate) fn print(page: &str) -> io::Result<()> {
    terminal::print(terminal::printable(page).trim_end())
}

pub(crate) fn print_json(document: &serde_json::Value) -> io::Result<()> {
    terminal::print(&terminal::document(document))
}

#[cfg(test)]
mod tests {
    use lambda_idempotency_core::record::Owner;

    use super::*;

    #[test]
    fn at_its_last_instant_and_for_the_clock_skew_a_key_is_held() {
        let at = Timestamp::from_secs;
        let mut record = IdempotencyRecord::new(Status::InProgress, at(500));
        record.owner = Some(Owner::from_bits(1));
        record.lease_until = Some(at(100));
        assert_eq!(State::of(&record, at(101)), State::InProgress);
        assert_eq!(State::of(&record, at(102)), State::Lapsed);
        assert_eq!(State::of(&record, at(502)), State::Expired);
        record.last_owner = record.owner.take();
        assert_eq!(State::of(&record, at(101)), State::InProgress, "stopped, and left held");
        assert_eq!(State::of(&record, at(102)), State::Released);
        record.lease_until = None;
        assert_eq!(State::of(&record, at(501)), State::InProgress, "of another library");
    }
}
