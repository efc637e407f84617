//! No duplicate comes later than the function's idempotency records are kept.
//!
//! A message can be delivered for as long as its queue keeps it, and again after it was moved back from the
//! dead-letter queue. The retention of the idempotency records is in the function's source, so it is read from there.

use std::fs;

use serde_json::Value;

use crate::{
    Problems,
    document::{at, entries, of_type, referred},
    every::{kept, the_function},
    root,
};

/// The library's default, in hours.
const DEFAULT: u64 = 24;

/// The source of the function that the template deploys.
pub(crate) fn source(template: &Value) -> Option<String> {
    let binary = the_function(template)["Metadata"]["BuildProperties"]["Binary"].as_str()?;
    let own = root().join("crates").join(binary).join("src/main.rs");
    if own.exists() {
        return fs::read_to_string(own).ok();
    }
    let package = root().join("docs/templates");
    let manifest = fs::read_to_string(package.join("Cargo.toml")).ok()?;
    let (_, target) = manifest.split_once(&format!("\nname = \"{binary}\"\n"))?;
    let path = target.lines().next()?.strip_prefix("path = \"")?.strip_suffix('"')?;
    fs::read_to_string(package.join(path)).ok()
}

/// The shortest retention of the operations in a function's source, in hours.
fn shortest(source: &str) -> Option<u64> {
    let named: Vec<u64> = source
        .split("Duration::from_hours(")
        .skip(1)
        .map(|rest| rest.split(')').next()?.split(" * ").map(|n| n.parse::<u64>().ok()).product())
        .collect::<Option<_>>()?;
    let operations = source.matches("Operation::new(").count();
    let default = (named.len() < operations).then_some(DEFAULT);
    named.into_iter().chain(default).min()
}

/// When the last delivery of a message can start, in seconds after it was sent: at the end of the first queue, or of
/// the dead-letter queue after which it was moved back once.
fn last_delivery(template: &Value, queue: &Value) -> u64 {
    let dead_letters = referred(template, &queue["RedrivePolicy"]["deadLetterTargetArn"]);
    if dead_letters.is_null() {
        return kept(queue);
    }
    // In a FIFO queue, the time starts again when a message becomes a dead letter; in a standard queue it goes on.
    let until_redrive = if queue["FifoQueue"] == true {
        kept(queue) + kept(dead_letters)
    } else {
        kept(dead_letters).max(kept(queue))
    };
    until_redrive + kept(queue)
}

pub(crate) fn problems(template: &Value) -> Problems {
    let Some(hours) = source(template).as_deref().and_then(shortest) else {
        return vec!["retention: not found in the function's source".to_owned()];
    };
    let retention = 3600 * hours;
    let mut last: Vec<(String, u64)> = Vec::new();
    let function = &the_function(template)["Properties"];
    for (name, event) in entries(&function["Events"]) {
        let event = &event["Properties"];
        if !event["Queue"].is_null() {
            let queue = referred(template, &event["Queue"]);
            last.push((name.clone(), last_delivery(template, queue)));
        }
        // A rule retries, and then Lambda does.
        if !event["RetryPolicy"].is_null() {
            let again = &function["EventInvokeConfig"];
            let ages = [&event["RetryPolicy"], again].map(|it| &it["MaximumEventAgeInSeconds"]);
            let ages = ages.map(|age| age.as_u64().unwrap_or(24 * 3600));
            last.push((name.clone(), ages.iter().sum()));
        }
    }
    last.extend(streams(template));
    last.into_iter()
        .filter(|(_, last)| *last > retention)
        .map(|(name, last)| {
            format!("{name}: a delivery can come {last} s later, the retention is {retention} s")
        })
        .collect()
}

/// Until when Lambda delivers records of streams; without a limit, as long as a stream can keep them: a year.
fn streams(template: &Value) -> Vec<(String, u64)> {
    let events = entries(&the_function(template)["Properties"]["Events"]);
    let events = events.into_iter().filter(|(_, event)| !event["Properties"]["Stream"].is_null());
    let mappings = of_type(template, "AWS::Lambda::EventSourceMapping");
    let names = events.map(|(name, event)| (name.as_str(), event)).chain(mappings);
    let age = |it: &Value| at(it, "/Properties/MaximumRecordAgeInSeconds").as_u64();
    names.map(|(name, it)| (name.to_owned(), age(it).unwrap_or(365 * 24 * 3600))).collect()
}

#[test]
fn retentions_are_read_from_sources() {
    for (source, expected) in [
        ("Operation::new(\"a\")", Some(24)),
        ("Operation::new(\"a\").retention(Duration::from_hours(24 * 18))", Some(432)),
        (
            "Operation::new(\"a\").retention(Duration::from_hours(48)); Operation::new(\"b\")",
            Some(24),
        ),
        ("Operation::new(\"a\").retention(Duration::from_hours(LONG))", None),
    ] {
        assert_eq!(shortest(source), expected, "{source}");
    }
}
