//! Checks of `template.yaml`, and of the templates in `docs/templates` and `docs/prove`, that the linters do not make.
//!
//! `sam validate --lint` and `cfn-lint` accept a misspelt `ReportBatchItemFailures`, a visibility
//! timeout shorter than the function's, or a TTL on an attribute that is never written. A template with such a
//! mistake deploys without an error and then loses or repeats messages, so each has a check here.
//!
//! A check is a function from the parsed template to the problems that it found. Where a check computes something, the last
//! test breaks a template, and asserts that the check reports it.
//!
//! | file | holds |
//! |---|---|
//! | `every` | the checks of all templates, which go by the types of resources and not by their names |
//! | `grants`, `http`, `chain` | parts of these: permissions, HTTP, and who sends to a queue |
//! | `retention` | how late a duplicate can come, and how long the function recognises it |
//! | `example` | what only `template.yaml` has |
//! | `prove` | the template of the command `prove` |
//! | `infrastructure` | the examples for the CDK and for Terraform |
//! | `document` | the template as JSON, and in each way in which it can be deployed |

// A test may panic, but Clippy only allows it in functions marked `#[test]`. Indexing is safe here, because the
// values are JSON, where a missing member is null.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod chain;
mod document;
mod every;
mod example;
mod grants;
mod http;
mod infrastructure;
mod prove;
mod retention;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

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

/// The names of the files in a folder that end so, without the end.
fn names(folder: &str, end: &str) -> BTreeSet<String> {
    let files = fs::read_dir(root().join(folder)).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| Some(name.strip_suffix(end)?.to_owned())).collect()
}

/// The templates: `example` is `template.yaml`.
fn templates() -> BTreeMap<String, Value> {
    let others = names("docs/templates", ".yaml").into_iter();
    let others = others.map(|name| (parsed(&read(&format!("docs/templates/{name}.yaml"))), name));
    let all = others.chain([
        (parsed(&read("template.yaml")), "example".to_owned()),
        (parsed(&read("docs/prove/template.yaml")), "prove".to_owned()),
    ]);
    all.map(|(template, name)| (name, template)).collect()
}

fn problems(name: &str, template: &Value) -> Problems {
    match name {
        "prove" => prove::problems(template),
        "example" => [every::problems(template), example::problems(template)].concat(),
        _ => every::problems(template),
    }
}

#[test]
fn the_templates_have_no_problems() {
    let list = read("docs/templates/README.md");
    let templates = templates();
    let names: Vec<_> = templates.keys().map(String::as_str).collect();
    assert_eq!(names, ["example", "http", "minimal", "prove", "sns-fifo-to-sqs-fifo", "stream"]);
    for (name, template) in templates {
        assert_eq!(problems(&name, &template), Problems::new(), "{name}");
        let is_listed = list.contains(&format!("| [`{name}.yaml`]({name}.yaml) |"));
        assert!(is_listed || ["example", "prove"].contains(&&*name), "{name}");
    }
}

/// The template that a reader of the quick start copies, and deploys.
#[test]
fn the_template_of_the_quick_start_reports_failures_tells_somebody_and_names_its_application() {
    let page = read("crates/lambda/src/guide/quick_start.md");
    let text = page.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let template = parsed(text);
    let checks = [every::mappings, every::alarms, every::application];
    let problems: Problems = checks.iter().flat_map(|check| check(&template)).collect();
    assert_eq!(problems, Problems::new());
    let readme = read("README.md");
    let to_set = readme.split("## Four things to set in AWS").nth(1).unwrap();
    let to_set = to_set.split("\n## ").next().unwrap();
    for thing in
        ["IDEMPOTENCY_TABLE", "PartiQLInsert", "ReportBatchItem", "IDEMPOTENCY_APPLICATION"]
    {
        assert!(to_set.contains(thing) && text.contains(thing), "{thing}");
    }
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

#[test]
fn the_sample_events_are_listed_and_the_duplicates_are_of_both_kinds() {
    let readme = read("events/README.md");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once(".json`"));
    let listed: BTreeSet<_> = rows.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(listed, names("events", ".json"));
    let event: Value = serde_json::from_str(&read("events/sqs-duplicates.json")).unwrap();
    let records = event["Records"].as_array().unwrap();
    let order = |record: &Value| -> Value {
        serde_json::from_str(record["body"].as_str().unwrap()).unwrap()
    };
    let orders: BTreeSet<_> =
        records.iter().map(|record| order(record)["orderId"].to_string()).collect();
    let messages: BTreeSet<_> =
        records.iter().map(|record| record["messageId"].to_string()).collect();
    assert_eq!((records.len(), messages.len(), orders.len()), (6, 5, 4));
}

/// Each row breaks a template in one way: its name, where, the JSON that comes there (or none), and some words of the problem.
const BREAKAGES: &str = r##"
# The function and its table.
minimal | /Resources/Function/Metadata/BuildProperties/Binary | "first_used" | there is no function {"Binary":"first_used"}
minimal | /Resources/Function/Metadata/BuildProperties | | not found in the function's source
minimal | Function/Environment/Variables/IDEMPOTENCY_TABLE/Ref | "Table" | there is no table Table
minimal | Function/Environment/Variables/IDEMPOTENCY_TABEL | "Table" | IDEMPOTENCY_TABEL: the function reads no
example | OrdersFunction/Environment/Variables/ORDERS_SNS_KEYPATH | "orderId" | ORDERS_SNS_KEYPATH: the function reads no
example | OrdersFunction/LoggingConfig/ApplicationLogLevel | "WARN" | ApplicationLogLevel: "WARN"
example | OrdersTable/KeySchema/0/AttributeName | "id" | OrdersTable: KeySchema
# Queues.
minimal | Function/Events/Orders/Properties/BatchSize | 100 | needs a window
minimal | Function/Timeout | 31 | must be at least 186
sns-fifo-to-sqs-fifo | Queue/VisibilityTimeout | | VisibilityTimeout is 30
example | OrdersFunction/Events/Orders/Properties/MaximumBatchingWindowInSeconds | 1 | must be at least 181
example | /Mappings/VisibilityByTimeout/60/Seconds | 359 | VisibilityTimeout is 359, must be at least 360
example | /Mappings/VisibilityByTimeout/900 | | must be at least 5400
example | /Parameters/FunctionTimeout/AllowedValues/0 | 45 | must be at least 270
minimal | Queue/RedrivePolicy/maxReceiveCount | 9 | must be at least 10
sns-fifo-to-sqs-fifo | Queue/RedrivePolicy/maxReceiveCount | 14 | must be at least 15
minimal | Queue/RedrivePolicy | | no dead-letter
minimal | DeadLetterQueue/MessageRetentionPeriod | | keeps messages for longer
sns-fifo-to-sqs-fifo | UndeliveredQueue/MessageRetentionPeriod | | keeps messages for less than 14 days
sns-fifo-to-sqs-fifo | DeadLetterQueue/FifoQueue | | of another kind
example | QueuesPolicy/Queues/0 | | OrdersQueue accepts requests without TLS
example | UndeliveredQueuePolicy/PolicyDocument/Statement/2/Condition | | UndeliveredQueue accepts
# Events of SNS and EventBridge.
example | OrdersFunction/Events/OrderPlaced/Properties/RetryPolicy | | retry for None
example | OrdersFunction/EventInvokeConfig/MaximumEventAgeInSeconds | 64801 | retry for Some(86401)
example | OrdersFunction/EventInvokeConfig/DestinationConfig | | no queue: null
example | UndeliveredQueuePolicy/PolicyDocument/Statement/0 | | sns.amazonaws.com may not
example | UndeliveredQueuePolicy/PolicyDocument/Statement/1/Condition | | events.amazonaws.com may not
# Streams, and what is optional.
stream | Function/Events/Orders/Properties/MaximumRetryAttempts | -1 | MaximumRetryAttempts
example | OrderStreamMapping/MaximumRetryAttempts | 10 | MaximumRetryAttempts
example | OrderStreamMapping/FunctionResponseTypes | | OrderStreamMapping: no ReportBatchItemFailures
example | OrderStreamMapping/MaximumRecordAgeInSeconds | 86401 | must be a day at most
stream | Function/Events/Changes/Properties/DestinationConfig | | Changes: no OnFailure queue
stream | Function/Events/Changes/Type | "MSK" | no check knows
example | /Resources/OrderStreamMapping/Condition | | OrderStreamArn is empty
example | /Resources/KeyPolicy/Condition | | KmsKeyArn is empty
# Alarms.
minimal | /Resources/DeadLetterAlarm | | nobody is told of messages in Dead
sns-fifo-to-sqs-fifo | UndeliveredAlarm/AlarmActions | | nobody is told of messages in Undelivered
stream | GivenUpAlarm/MetricName | "ApproximateNumberOfMessages" | nobody is told of messages in GivenUp
stream | Alarms/Subscription | | nobody is told
stream | IteratorAgeAlarm/Threshold | 36000000 | nobody is told that a stream's records wait
example | FailedEventsAlarm/AlarmActions/0/Fn::If/1/Ref | "OrdersTopic" | nobody is told of messages in FailedEvents
example | PermanentFailuresAlarm/TreatMissingData | | PermanentFailures
example | /Mappings/LongByTimeout/60/Milliseconds | 60000 | no alarm on Duration
example | OrdersDashboard/DashboardBody/Fn::Sub/0 | "{\"widgets\": [}" | not JSON
# Retention.
minimal | Queue/MessageRetentionPeriod | 432000 | a delivery can come 1641600 s later
sns-fifo-to-sqs-fifo | Queue/MessageRetentionPeriod | 345601 | the retention is 1900800 s
stream | Function/Events/Changes/Properties/MaximumRecordAgeInSeconds | 86401 | Changes: a delivery can come 86401 s later
stream | Function/Events/Orders/Properties/MaximumRecordAgeInSeconds | | Orders: a delivery can come 31536000 s later
example | OrdersFunction/EventInvokeConfig/MaximumEventAgeInSeconds | 2000000 | OrderPlaced: a delivery can come
# The chain.
sns-fifo-to-sqs-fifo | UndeliveredQueue/FifoQueue | | not both FIFO
sns-fifo-to-sqs-fifo | Topic/FifoTopic | | not both
sns-fifo-to-sqs-fifo | Subscription/RawMessageDelivery | | RawMessageDelivery
sns-fifo-to-sqs-fifo | Subscription/RedrivePolicy | | the topic may not send to null
sns-fifo-to-sqs-fifo | FromTheTopic/PolicyDocument/Statement/0/Condition | | the topic may not send
# HTTP.
http | Function/Timeout | 30 | longer than 29 s
http | Function/FunctionUrlConfig/AuthType | "NONE" | AWS_IAM
http | Api/Auth/DefaultAuthorizer | | no authorizer
http | Api/Auth/Authorizers/Users/JwtConfiguration/audience/0 | | no authorizer
http | Api/CorsConfiguration/AllowHeaders/2 | | AllowHeaders has no idempotency-key
http | Api/CorsConfiguration/ExposeHeaders | | ExposeHeaders has no retry-after
# Encryption.
example | FailedEventsQueue/KmsMasterKeyId | | FailedEventsQueue is not encrypted
example | OrdersTable/SSESpecification/KMSMasterKeyId | | OrdersTable is not encrypted
minimal | Queue/SqsManagedSseEnabled | | Queue is not encrypted
sns-fifo-to-sqs-fifo | Topic/KmsMasterKeyId | | Topic is not encrypted
# Permissions.
http | Role/Policies/0/PolicyDocument/Statement/0/Action/6 | | PartiQLDelete
minimal | Role/Policies/0/PolicyDocument/Statement/0/Action/7 | "dynamodb:Scan" | Scan
minimal | Role/Policies/0/PolicyDocument/Statement/0/Resource | "*" | on "*" is not needed
minimal | Role/Policies/0/PolicyDocument/Statement/2 | | logs:PutLogEvents
minimal | Role/Policies/0/PolicyDocument/Statement/1/Effect | "Deny" | Effect
minimal | Role/Policies/0/PolicyDocument/Statement/1/NotAction | [] | other words
minimal | Role/ManagedPolicyArns | ["AmazonDynamoDBFullAccess"] | adds permissions
minimal | /Resources/More | {"Type": "AWS::IAM::Policy"} | a policy elsewhere
stream | Role/Policies/0/PolicyDocument/Statement/3/Resource | "*" | dynamodb:ListStreams
stream | Role/Policies/0/PolicyDocument/Statement/4 | | sqs:SendMessage
stream | Function/Policies | ["AmazonDynamoDBFullAccess"] | adds permissions
example | OrdersRole/Policies/1/PolicyDocument/Statement/0/Action/1 | "dynamodb:GetItem" | OrdersTable
example | OrderStreamPolicy/PolicyDocument/Statement/0/Resource | "*" | kinesis:GetRecords on "*" is not needed
example | KeyPolicy/PolicyDocument/Statement/0/Condition | | kms:Decrypt on {"Ref":"KmsKeyArn"} is not needed
# `prove`.
prove | /Resources/Ledger/DeletionPolicy | "Retain" | Ledger: DeletionPolicy
prove | Queue/Tags | | Queue: has no tag
prove | Ledger/Tags/2 | | prove-queue
prove | Function/Timeout | 30 | VisibilityTimeout
prove | FifoDeadLetters/FifoQueue | | of another kind
prove | Role/Policies/0/PolicyDocument/Statement/1 | | PutItem on {"Fn::GetAtt":"Ledger.Arn"} is missing
prove | Role/Policies/0/PolicyDocument/Statement/1/Action/1 | "dynamodb:Scan" | dynamodb:Scan
"##;

#[test]
fn every_mistake_is_found() {
    let templates = templates();
    let rows = BREAKAGES.lines().filter(|row| !row.is_empty() && !row.starts_with('#'));
    for row in rows {
        let [name, pointer, json, expected] = row.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("four cells: {row}")
        };
        let found = problems(name, &breaking(&templates[name], pointer, json));
        assert!(found.iter().any(|problem| problem.contains(expected)), "{row}: {found:#?}");
    }
}
