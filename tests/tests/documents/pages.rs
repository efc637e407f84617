//! Every source has a page, and every page has the same sections: the payload's identity,
//! its order, how failures are reported, what to set in the template, and an example that runs.
//!
//! The examples themselves are documentation tests of `lambda-idempotency`. `template` checks that the template of
//! the example function has the settings that the pages require.

use std::collections::BTreeSet;

use serde_yaml_ng::Value;

use crate::{files, read};

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
    let blocks = page.split("```").skip(1).step_by(2);
    let of_language = |block: &'p str| {
        let (first, code) = block.split_once('\n')?;
        first.starts_with(language).then_some(code)
    };
    blocks.filter_map(of_language).collect()
}

/// All names of members in a value, however deep; tags such as `!GetAtt` do not matter.
fn names(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Tagged(tagged) => names(&tagged.value, found),
        Value::Sequence(items) => items.iter().for_each(|item| names(item, found)),
        Value::Mapping(members) => {
            for (name, member) in members {
                found.extend(name.as_str().map(str::to_owned));
                names(member, found);
            }
        }
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
        match serde_yaml_ng::from_str(block) {
            Ok(yaml) => names(&yaml, &mut set),
            Err(error) => problems.push(format!("its template is not YAML: {error}")),
        }
    }
    let missing = settings.iter().filter(|setting| !set.contains(**setting));
    problems.extend(missing.map(|setting| format!("its template does not set {setting}")));
    problems
}

/// Each page has all sections, is in the list that users read, and tells them to run an example that exists.
#[test]
fn every_page_is_listed_and_has_all_sections_and_an_example() {
    let example = read("crates/lambda/examples/sources.rs");
    for (name, settings) in PAGES {
        let text = page(name);
        assert_eq!(problems(&text, settings), Vec::<String>::new(), "{name}");
        if settings.contains(&"MaximumRecordAgeInSeconds") {
            // Deliveries in an outage of the store count as retries, so that healthy records would be given up.
            let retries = text.split("MaximumRetryAttempts: ").skip(1);
            let limits: Vec<_> = retries.filter_map(|it| it.split_whitespace().next()).collect();
            // Lambda takes no limit as 10 for Kafka with a destination:
            // https://docs.aws.amazon.com/lambda/latest/dg/kafka-retry-configurations.html
            assert_eq!(limits, [if name == "kafka" { "10000" } else { "-1" }], "{name}");
        }
        if name == "http" {
            for file in ["crates/lambda/examples/http.rs", "crates/lambda/examples/http.json"] {
                assert!(text.contains(file) && !read(file).is_empty(), "{file}");
            }
            continue;
        }
        let (_, rest) = text.split_once("--example sources ").expect(name);
        let source = rest.split('`').next().unwrap_or_default();
        assert!(example.contains(&format!("(\"{source}\", ")), "{name}: {source}");
    }
    let known: BTreeSet<String> = PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let present = files(&[SOURCES], &[".md"]);
    let present = present.iter().map(|(path, _)| &path[SOURCES.len() + 1..path.len() - 3]);
    assert!(known.iter().map(String::as_str).eq(present), "{SOURCES}");
    let list = read(&format!("{SOURCES}.md"));
    let ends = list.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(") |"));
    let listed = ends.filter_map(|row| row.rsplit_once("(crate::guide::sources::"));
    let listed: BTreeSet<_> = listed.map(|(_, name)| name.to_owned()).collect();
    assert_eq!(known, listed);
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
    let (_, answers) = page.split_once("\n## Answers").expect("the section");
    let answers = answers.split("\n## ").next().unwrap_or_default();
    let explained: BTreeSet<_> =
        answers.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(problems, explained);
}
