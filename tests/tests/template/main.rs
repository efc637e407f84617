//! Checks of `template.yaml`, and of the templates in `docs/templates`, that the linters do not make.
//!
//! `sam validate --lint` and `cfn-lint` accept a misspelt `ReportBatchItemFailures`, a visibility
//! timeout shorter than the function's, or a TTL on an attribute that is never written. A template with such a
//! mistake deploys without an error and then loses or repeats messages, so each has a check here.
//!
//! A check is a function from the parsed template to the problems that it found. Where a check computes something, the last
//! test breaks the template, and asserts that the check reports it.
//!
//! | file | holds |
//! |---|---|
//! | `checks` | the list of all checks |
//! | `function`, `role`, `queue`, `asynchronous`, `stream`, `tables`, `encryption`, `alarms` | the checks of these parts |
//! | `retention` | how late a duplicate can come, and how long the function recognises it |
//! | `others` | the tests of the templates in `docs/templates` |
//! | `every`, `grants`, `http`, `chain` | their checks, which go by the types of resources and not by their names |
//! | `prove` | the template of the command `prove` |
//! | `infrastructure` | the examples for the CDK and for Terraform |
//! | `document` | the template as JSON |

// A test may panic, but Clippy only allows it in functions marked `#[test]`. Indexing is safe here, because the
// values are JSON, where a missing member is null.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod alarms;
mod asynchronous;
mod chain;
mod checks;
mod document;
mod encryption;
mod every;
mod function;
mod grants;
mod http;
mod infrastructure;
mod others;
mod prove;
mod queue;
mod retention;
mod role;
mod stream;
mod tables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use checks::{FUNCTION, Problems, QUEUE, problems};
use document::{breaking, long_form};

#[test]
fn the_template_has_no_problems() {
    assert_eq!(problems(&template()), Problems::new());
}

#[test]
fn the_function_is_built_so_that_a_panic_unwinds() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(function::unwinds(&manifest), "`sam build` would build with panic = \"abort\"");
    for broken in ["panic = \"abort\"", "", "# panic = \"unwind\""] {
        assert!(!function::unwinds(&manifest.replace("panic = \"unwind\"\n", broken)), "{broken}");
    }
}

#[test]
fn builds_are_not_cached_by_a_hash_of_their_own_output() {
    let settings = fs::read_to_string(root().join("samconfig.toml")).unwrap();
    assert!(!settings.lines().any(|line| line.starts_with("cached")));
}

#[test]
fn every_sample_event_parses() {
    for file in sample_events() {
        let text = fs::read_to_string(&file).unwrap();
        if let Err(error) = serde_json::from_str::<Value>(&text) {
            panic!("{}: {error}", file.display());
        }
    }
}

#[test]
fn the_events_readme_lists_exactly_the_sample_events() {
    let readme = fs::read_to_string(root().join("events/README.md")).unwrap();
    let listed: BTreeSet<_> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| [`")?.split('`').next())
        .map(str::to_owned)
        .collect();
    let present: BTreeSet<_> = sample_events()
        .iter()
        .map(|file| file.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, present);
}

#[test]
fn the_duplicates_are_of_both_kinds() {
    let text = fs::read_to_string(root().join("events/sqs-duplicates.json")).unwrap();
    let event: Value = serde_json::from_str(&text).unwrap();
    let records: Vec<(String, String)> = event["Records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            let order: Value = serde_json::from_str(record["body"].as_str().unwrap()).unwrap();
            (order["orderId"].to_string(), record["messageId"].to_string())
        })
        .collect();
    let orders: BTreeSet<_> = records.iter().map(|(order, _)| order).collect();
    let messages: BTreeSet<_> = records.iter().map(|(_, message)| message).collect();
    assert_eq!((records.len(), messages.len(), orders.len()), (6, 5, 4));
}

/// Each row breaks the template in one way, and has some words of the expected problem.
#[test]
fn every_check_reports_its_problem() {
    let queue_event = "/Resources/OrdersFunction/Properties/Events/Orders/Properties";
    let placed = "/Resources/OrdersFunction/Properties/Events/OrderPlaced/Properties";
    let asynchronous = "/Resources/OrdersFunction/Properties/EventInvokeConfig";
    let mapping = format!("{}/Properties", stream::MAPPING);
    let idempotency = "/Resources/OrdersRole/Properties/Policies/0/PolicyDocument/Statement/0";
    let orders = "/Resources/OrdersRole/Properties/Policies/1/PolicyDocument/Statement/0";
    let by_timeout = "/Mappings/VisibilityByTimeout";
    let without_insert = json!([
        "dynamodb:GetItem",
        "dynamodb:BatchGetItem",
        "dynamodb:PutItem",
        "dynamodb:DeleteItem",
        "dynamodb:PartiQLUpdate",
        "dynamodb:PartiQLDelete",
    ]);

    let breakages: Vec<(String, Option<Value>, &str)> = vec![
        // The function.
        (
            format!("{FUNCTION}/Environment/Variables/ORDERS_SNS_KEYPATH"),
            Some(json!("orderId")),
            "ORDERS_SNS_KEYPATH",
        ),
        // The queue and its poller.
        (format!("{queue_event}/BatchSize"), Some(json!(100)), "MaximumBatchingWindowInSeconds"),
        (format!("{QUEUE}/VisibilityTimeout"), Some(json!(179)), "VisibilityTimeout"),
        (format!("{by_timeout}/60/Seconds"), Some(json!(359)), "timeout of 60 s"),
        (format!("{by_timeout}/900"), None, "timeout of 900 s"),
        ("/Parameters/FunctionTimeout/AllowedValues/0".into(), Some(json!(45)), "timeout of 45 s"),
        ("/Parameters/FunctionTimeout/Default".into(), Some(json!(45)), "Default"),
        (format!("{queue_event}/MaximumBatchingWindowInSeconds"), Some(json!(1)), "at least 181"),
        // Dead letters and retries.
        (format!("{QUEUE}/RedrivePolicy/maxReceiveCount"), Some(json!(9)), "maxReceiveCount"),
        (
            "/Resources/OrdersDeadLetterQueue/Properties/MessageRetentionPeriod".into(),
            Some(json!(345_600)),
            "MessageRetentionPeriod",
        ),
        (format!("{placed}/RetryPolicy"), None, "RetryPolicy"),
        (
            "/Resources/UndeliveredQueuePolicy/Properties/PolicyDocument/Statement/0".into(),
            None,
            "sns.amazonaws.com",
        ),
        (
            "/Resources/UndeliveredQueuePolicy/Properties/PolicyDocument/Statement/1/Condition"
                .into(),
            None,
            "events.amazonaws.com",
        ),
        // The stream.
        (format!("{mapping}/MaximumRetryAttempts"), Some(json!(-1)), "MaximumRetryAttempts"),
        (format!("{mapping}/MaximumRetryAttempts"), Some(json!(10)), "MaximumRetryAttempts"),
        (
            format!("{mapping}/MaximumRecordAgeInSeconds"),
            Some(json!(86_400 * 18)),
            "MaximumRecordAgeInSeconds",
        ),
        (
            "/Resources/Surplus".into(),
            Some(json!({"Type": "AWS::IAM::Policy"})),
            "grants rights that no check knows",
        ),
        // Retention.
        (
            format!("{QUEUE}/MessageRetentionPeriod"),
            Some(json!(1_000_000)),
            "Orders: a delivery can come",
        ),
        (
            format!("{asynchronous}/MaximumEventAgeInSeconds"),
            Some(json!(2_000_000)),
            "OrderPlaced: a delivery can come",
        ),
        // Permissions.
        (format!("{idempotency}/Action"), Some(without_insert), "dynamodb:PartiQLInsert"),
        (format!("{idempotency}/Action/4"), Some(json!("dynamodb:*")), "wildcard"),
        (format!("{idempotency}/Action/0"), Some(json!("dynamodb:Scan")), "dynamodb:Scan"),
        (format!("{idempotency}/Resource"), Some(json!("*")), "wildcard"),
        (
            format!("{idempotency}/Resource"),
            Some(json!({"Fn::Sub": "${IdempotencyTable.Arn}*"})),
            "wildcard",
        ),
        (format!("{idempotency}/Effect"), Some(json!("Deny")), "Effect"),
        (format!("{idempotency}/NotAction"), Some(json!(["dynamodb:GetItem"])), "NotAction"),
        (format!("{orders}/Action/1"), Some(json!("dynamodb:GetItem")), "OrdersTable"),
        (
            format!("{FUNCTION}/Policies"),
            Some(json!([{"DynamoDBCrudPolicy": {"TableName": {"Ref": "IdempotencyTable"}}}])),
            "Policies",
        ),
        // Alarms.
        (
            "/Resources/FailedEventsAlarm/Properties/MetricName".into(),
            Some(json!("ApproximateNumberOfMessages")),
            "FailedEventsQueue",
        ),
        ("/Resources/PermanentFailuresAlarm/Properties/TreatMissingData".into(), None, "Permanent"),
        ("/Mappings/LongByTimeout/60/Milliseconds".into(), Some(json!(60_000)), "60 s"),
        (
            "/Resources/OrdersDashboard/Properties/DashboardBody/Fn::Sub/0".into(),
            Some(json!("{\"widgets\": [}")),
            "not JSON",
        ),
        // Encryption.
        (
            "/Resources/FailedEventsQueue/Properties/KmsMasterKeyId".into(),
            None,
            "FailedEventsQueue/Properties/KmsMasterKeyId",
        ),
        (
            "/Resources/QueuesPolicy/Properties/Queues/0".into(),
            None,
            "OrdersQueue accepts requests without TLS",
        ),
        (
            "/Resources/UndeliveredQueuePolicy/Properties/PolicyDocument/Statement/2/Condition"
                .into(),
            None,
            "UndeliveredQueue accepts",
        ),
    ];

    let whole = template();
    for (pointer, value, expected) in breakages {
        let broken = breaking(&whole, &pointer, value.clone());
        let found = problems(&broken);
        assert!(
            found.iter().any(|problem| problem.contains(expected)),
            "{pointer} = {value:?}: no problem with {expected:?} among {found:#?}"
        );
    }
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

fn sample_events() -> Vec<PathBuf> {
    let files: Vec<PathBuf> = fs::read_dir(root().join("events"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    assert!(!files.is_empty());
    files
}

fn template() -> Value {
    let text = fs::read_to_string(root().join("template.yaml")).unwrap();
    long_form(serde_yaml_ng::from_str(&text).unwrap())
}
