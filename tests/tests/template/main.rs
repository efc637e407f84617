//! Checks of `template.yaml`, and of the templates in `docs/templates`, that the linters do not make.
//!
//! `sam validate --lint` and `cfn-lint` accept a misspelt `ReportBatchItemFailures`, a visibility
//! timeout shorter than the function's, or a TTL on an attribute that is never written. A template with such a
//! mistake deploys without an error and then loses or repeats messages, so each has a check here.
//!
//! A check is a function from the parsed template to the problems that it found. The last test breaks templates, and asserts
//! that the checks report it.

// A test may panic, but Clippy only allows it in functions marked `#[test]`. Indexing is safe here, because the
// values are JSON, where a missing member is null.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod document;
mod every;
mod grants;
mod retention;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use document::{breaking, long_form};

type Problems = Vec<String>;

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn parsed(yaml: &str) -> Value {
    long_form(serde_yaml_ng::from_str(yaml).unwrap())
}

/// The templates, by their names in `BREAKAGES`.
const TEMPLATES: [(&str, &str); 5] = [
    ("example", "template.yaml"),
    ("http", "docs/templates/http.yaml"),
    ("minimal", "docs/templates/minimal.yaml"),
    ("fifo", "docs/templates/sns-fifo-to-sqs-fifo.yaml"),
    ("stream", "docs/templates/stream.yaml"),
];

#[test]
fn the_templates_have_no_problems() {
    for (name, path) in TEMPLATES {
        assert_eq!(every::problems(&parsed(&read(path))), Problems::new(), "{name}");
    }
}

/// The template that a reader of the quick start copies, and deploys.
#[test]
fn the_template_of_the_quick_start_reports_failures_and_names_its_application() {
    let page = read("crates/lambda/src/guide/quick_start.md");
    let text = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let template = parsed(text);
    let problems = [every::mappings(&template), every::application(&template)].concat();
    assert_eq!(problems, Problems::new());
}

/// If the workspace does not set `panic`, `cargo lambda` builds with abort on panic, and the library refuses that. SAM's cache
/// would be one by a hash of its own output.
#[test]
fn the_function_is_built_anew_and_so_that_a_panic_unwinds() {
    let manifest = read("Cargo.toml");
    let (_, profile) = manifest.split_once("\n[profile.release]\n").unwrap_or_default();
    let mut settings = profile.lines().take_while(|line| !line.starts_with('['));
    assert!(settings.any(|line| line == "panic = \"unwind\""), "{profile}");
    assert!(!read("samconfig.toml").lines().any(|line| line.starts_with("cached")));
}

/// Each row breaks a template in one way: its name, where, the JSON that comes there (or none), and some words of the problem.
const BREAKAGES: &str = r##"
minimal | Function/Environment/Variables/IDEMPOTENCY_TABLE/Ref | "Table" | there is no table Table
minimal | Function/Environment/Variables/IDEMPOTENCY_APPLICATION | | IDEMPOTENCY_APPLICATION
minimal | IdempotencyTable/TimeToLiveSpecification/AttributeName | "ttl" | TimeToLiveSpecification
minimal | IdempotencyTable/KeySchema/0/AttributeName | "key" | KeySchema
minimal | Function/Events/Orders/Properties/FunctionResponseTypes/0 | "ReportBatchItemFailure" | no ReportBatchItemFailures
minimal | Function/Timeout | 31 | must be at least 186
example | /Mappings/VisibilityByTimeout/900 | | must be at least 5400
minimal | Queue/RedrivePolicy/maxReceiveCount | 9 | must be at least 10
minimal | Queue/RedrivePolicy | | no dead-letter
stream | Function/Events/Changes/Properties/DestinationConfig | | Changes: no OnFailure queue
example | OrdersFunction/EventInvokeConfig/DestinationConfig | | no queue: null
fifo | Queue/MessageRetentionPeriod | 345601 | the retention is 1900800 s
http | Role/Policies/0/PolicyDocument/Statement/0/Action/7 | | PartiQLDelete
minimal | Role/Policies/0/PolicyDocument/Statement/0/Action/8 | "dynamodb:Scan" | Scan
minimal | Role/Policies/0/PolicyDocument/Statement/0/Resource | "*" | on "*" is not needed
"##;

#[test]
fn every_mistake_is_found() {
    for row in BREAKAGES.lines().filter(|row| !row.is_empty()) {
        let [name, pointer, json, expected] = row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("four cells: {row}")
        };
        let (_, path) = TEMPLATES.iter().find(|(it, _)| *it == name).unwrap();
        let found = every::problems(&breaking(&parsed(&read(path)), pointer, json));
        assert!(found.iter().any(|problem| problem.contains(expected)), "{row}: {found:#?}");
    }
}
