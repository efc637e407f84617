//! Every source has a page, and every page has the same sections: the payload's identity,
//! its order, how failures are reported, what to set in the template, and an example that runs.
//!
//! The examples themselves are documentation tests of `lambda-idempotency`. `template` checks that the template of
//! the example function has the settings that the pages require.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::{read, root};

/// The pages, and the settings that their templates need. Without these, records are lost or block others.
const PAGES: [(&str, &[&str]); 15] = [
    ("active_mq", &["SourceAccessConfigurations"]),
    ("document_db", &["SourceAccessConfigurations", "FullDocument"]),
    ("dynamodb_streams", STREAM),
    ("envelopes", &["RawMessageDelivery"]),
    ("event_bridge", &["RetryPolicy", "DeadLetterConfig", "OnFailure"]),
    ("http", &["Timeout"]),
    ("invoke", &["MaximumEventAgeInSeconds", "OnFailure"]),
    (
        "kafka",
        &[
            "ProvisionedPollerConfig", // without it the others have no effect
            "FunctionResponseTypes",
            "BisectBatchOnFunctionError",
            "MaximumRetryAttempts",
            "MaximumRecordAgeInSeconds",
            "OnFailure",
        ],
    ),
    ("kinesis", STREAM),
    (
        "pipes",
        &[
            "InvocationType",
            "OnPartialBatchItemFailure",
            "MaximumRetryAttempts",
            "MaximumRecordAgeInSeconds",
            "DeadLetterConfig",
        ],
    ),
    ("rabbit_mq", &["SourceAccessConfigurations"]),
    ("s3", &["OnFailure"]),
    ("scheduler", &["RetryPolicy", "DeadLetterConfig", "OnFailure", "Input"]),
    ("sns", &["RedrivePolicy", "OnFailure"]),
    ("sqs", &["FunctionResponseTypes", "VisibilityTimeout", "RedrivePolicy", "maxReceiveCount"]),
];
/// A record that always fails must not stop its shard permanently, or cause the loss of other records.
const STREAM: &[&str] = &[
    "FunctionResponseTypes",
    "BisectBatchOnFunctionError",
    "MaximumRetryAttempts",
    "MaximumRecordAgeInSeconds",
    "OnFailure",
];
/// The folder of the pages.
const SOURCES: &str = "crates/lambda/src/guide/sources";
const SECTIONS: [&str; 5] = ["Identity", "Order", "Failure", "Template", "Example"];

fn page(name: &str) -> String {
    read(&format!("{SOURCES}/{name}.md"))
}

/// The blocks of code in this language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let opening = format!("```{language}");
    let blocks = page.split("\n```").zip(page.split("\n```").skip(1)).step_by(2);
    let blocks = blocks.map(|(_, block)| block);
    blocks
        .filter(|block| format!("```{block}").starts_with(&opening))
        .map(|block| block.split_once('\n').unwrap().1)
        .collect()
}

/// All names of members in a value, however deep.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                found.insert(name.clone());
                names(member, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(item, found)),
        _ => {}
    }
}

/// What is wrong with a page.
fn problems(text: &str, settings: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    for section in SECTIONS {
        let has = |opening: String| text.lines().any(|line| line.starts_with(&opening));
        if !has(format!("**{section}.**")) && !has(format!("## {section}")) {
            problems.push(format!("no section {section}"));
        }
    }
    if blocks(text, "rust").is_empty() {
        problems.push("no example in Rust".to_owned());
    }
    let mut set = BTreeSet::new();
    for block in blocks(text, "yaml") {
        // Tags such as `!GetAtt` do not matter here.
        match serde_yaml_ng::from_str::<serde_yaml_ng::Value>(block) {
            Ok(yaml) => names(&untagged(yaml), &mut set),
            Err(error) => problems.push(format!("its template is not YAML: {error}")),
        }
    }
    let missing = settings.iter().filter(|setting| !set.contains(**setting));
    problems.extend(missing.map(|setting| format!("its template does not set {setting}")));
    problems
}

fn untagged(yaml: serde_yaml_ng::Value) -> Value {
    use serde_yaml_ng::Value as Yaml;
    match yaml {
        Yaml::Tagged(tagged) => untagged(tagged.value),
        Yaml::Sequence(items) => items.into_iter().map(untagged).collect(),
        Yaml::Mapping(members) => members
            .into_iter()
            .filter_map(|(name, member)| Some((name.as_str()?.to_owned(), untagged(member))))
            .collect(),
        Yaml::String(text) => Value::String(text),
        _ => Value::Null,
    }
}

#[test]
fn every_page_has_all_sections() {
    for (name, settings) in PAGES {
        assert_eq!(problems(&page(name), settings), Vec::<String>::new(), "{name}");
    }
}

/// Deliveries in an outage of the store count as retries, so that healthy records would be given up.
#[test]
fn records_of_streams_are_given_up_by_age_and_not_by_retries() {
    for (name, settings) in PAGES {
        if !settings.contains(&"MaximumRecordAgeInSeconds") {
            continue;
        }
        let page = page(name);
        let retries = page.split("MaximumRetryAttempts: ").skip(1);
        let limits: Vec<_> = retries.filter_map(|rest| rest.split_whitespace().next()).collect();
        // Lambda takes no limit as 10 for Kafka with a destination:
        // https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html
        let expected = if name.contains("kafka") { "10000" } else { "-1" };
        assert_eq!(limits, [expected], "{name}");
    }
}

/// The list that users read, the folder and this test name the same pages.
#[test]
fn every_page_is_listed() {
    let known: BTreeSet<String> = PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let files = fs::read_dir(root().join(SOURCES)).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let present: BTreeSet<_> =
        files.filter_map(|file| file.strip_suffix(".md").map(str::to_owned)).collect();
    assert_eq!(known, present);
    let list = read(&format!("{SOURCES}.md"));
    let ends = list.lines().filter(|line| line.starts_with("| "));
    let listed: BTreeSet<_> = ends
        .filter_map(|row| row.strip_suffix(") |")?.rsplit_once("(crate::guide::sources::"))
        .map(|(_, name)| name.to_owned())
        .collect();
    assert_eq!(known, listed);
}

/// The examples that a page tells the reader to run exist.
#[test]
fn every_example_that_a_page_names_exists() {
    let example = root().join("crates/lambda/examples/sources.rs");
    let example = fs::read_to_string(example).unwrap();
    for (name, _) in PAGES {
        let page = page(name);
        if name == "http" {
            for file in ["http.rs", "http.json"] {
                let path = format!("crates/lambda/examples/{file}");
                assert!(page.contains(&path) && root().join(&path).exists(), "{path}");
            }
            continue;
        }
        let (_, rest) = page.split_once("--example sources ").unwrap_or_else(|| panic!("{name}"));
        let source = rest.split('`').next().unwrap();
        assert!(example.contains(&format!("(\"{source}\", ")), "{name}: {source}");
    }
}

/// The `type` of a problem over HTTP is a heading of the page.
#[test]
fn every_problem_over_http_is_explained() {
    let source = read("crates/lambda/src/http/problem.rs");
    let lines = source.lines().map(str::trim);
    let literals = lines.filter_map(|line| {
        let line = line.strip_prefix("name: ").unwrap_or(line);
        line.strip_prefix('"')?.strip_suffix("\",")
    });
    let is_name = |text: &&str| text.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    let problems: BTreeSet<_> = literals.filter(is_name).collect();
    assert!(problems.len() > 7, "{problems:?}: are these the problems?");
    let page = page("http");
    let (_, answers) = page.split_once("\n## Answers").unwrap();
    let answers = answers.split("\n## ").next().unwrap();
    let explained: BTreeSet<_> =
        answers.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(problems, explained);
}
