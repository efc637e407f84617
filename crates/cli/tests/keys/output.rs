//! What the command prints: for every sample, for the README, and as its help.

use std::path::PathBuf;

use serde_json::json;

use crate::{keys, keys_of, messages, root};

/// Every file that ends in `.json`, in a folder and its subfolders.
fn samples(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 5, "{folder} has samples");
    found
}

#[test]
fn every_sample_is_shown_within_100_columns() {
    let events = samples("events").into_iter().chain(samples("crates/lambda/tests/events"));
    let mut shown = 0;
    for path in events {
        let ran = keys([path.as_os_str()]);
        // Some samples of requests have placeholders for their host.
        if ran.code == Some(2) && path.to_str().unwrap().contains("/http/") {
            let ran = ran.refused("lambda_http cannot convert the event to a request");
            assert_eq!((ran.err.lines().count(), &*ran.out), (1, ""), "{}", ran.err);
            continue;
        }
        assert!(matches!(ran.code, Some(0 | 1)), "{}: {}", path.display(), ran.err);
        let summary = ran.out.lines().last().unwrap();
        assert_eq!(ran.code == Some(0), summary.ends_with(" 0 without a key"), "{summary}");
        for line in ran.out.lines() {
            assert!(line.chars().count() <= 100, "{}: {line}", path.display());
            assert_eq!(line, line.trim_end(), "{}", path.display());
        }
        shown += 1;
    }
    assert!(shown > 60, "{shown} samples");
}

#[test]
fn control_characters_of_an_event_are_not_printed() {
    let mut event = messages(&[json!("")]);
    event["Records"][0]["body"] = "\u{1b}[2J\u{7}".into();
    let ran = keys_of("cursor", &[event], &["{0}"]);
    assert!(ran.out.contains("[2J") && !ran.out.contains(['\u{1b}', '\u{7}']), "{:?}", ran.out);
}

#[test]
fn the_help_says_that_payloads_are_shown() {
    let ran = keys(["--help"]);
    assert!(ran.out.contains("IT PRINTS PAYLOADS AND RAW KEYS"), "{}", ran.out);
    assert!(ran.out.contains("Exit code:"), "{}", ran.out);
}

/// Splits a command line as a shell does, for the command lines of the README.
fn words(line: &str) -> Vec<String> {
    let quoted = line.split('\'').enumerate();
    let words = quoted.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

#[test]
fn the_readme_shows_what_the_command_prints() {
    let readme = std::fs::read_to_string(root().join("crates/cli/README.md")).unwrap();
    let blocks: Vec<_> = readme.split("```console\n$ lambda-idempotency keys ").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let (block, _) = block.split_once("\n```").unwrap();
        let (line, shown) = block.split_once('\n').unwrap();
        let ran = keys(words(line));
        assert_eq!(ran.out.trim_end(), shown, "{line}");
    }
}
