//! The template of `prove`: all of it goes with the stack, has its tag, and is what the command and the audit expect.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{entries, items, keys, referred, target},
    every::{the_function, unlike},
    grants, read, root,
};

const MARK: &str = "lambda-idempotency-prove";

pub(crate) fn problems(template: &Value) -> Problems {
    let checks = [resources, tags, function, queues, permissions];
    checks.iter().flat_map(|check| check(template)).collect()
}

/// What holds data, or costs something, is removed with the stack, and is known by its tag.
fn resources(template: &Value) -> Problems {
    let mut problems = Problems::new();
    for (name, resource) in entries(&template["Resources"]) {
        let kind = resource["Type"].as_str().unwrap_or_default();
        if ["IAM", "Serverless"].iter().any(|part| kind.contains(part)) || kind.ends_with("Policy")
        {
            continue;
        }
        for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
            if resource[policy] != "Delete" {
                problems.push(format!("{name}: {policy} is {}", resource[policy]));
            }
        }
        let mark = json!({ "Key": MARK, "Value": { "Ref": "AWS::StackName" } });
        let is_marked = items(&resource["Properties"]["Tags"]).contains(&mark);
        if !is_marked && kind != "AWS::Budgets::Budget" {
            problems.push(format!("{name}: has no tag {MARK}"));
        }
    }
    problems
}

/// The tags of the ledger are those that the command looks for, and name resources of the stack.
fn tags(template: &Value) -> Problems {
    let source = read("crates/cli/src/prove/stack.rs");
    let wanted = source.split("tag(\"").skip(1).filter_map(|rest| rest.split('"').next());
    let wanted: BTreeSet<String> = wanted.map(|of| format!("prove-{of}")).collect();
    let ledger = &template["Resources"]["Ledger"]["Properties"];
    let mut problems = Problems::new();
    let mut found = BTreeSet::new();
    for tag in items(&ledger["Tags"]).iter().filter(|tag| tag["Key"] != MARK) {
        found.insert(tag["Key"].as_str().unwrap_or_default().to_owned());
        if referred(template, &tag["Value"]).is_null() {
            problems.push(format!("Ledger: the tag {} names no resource", tag["Key"]));
        }
    }
    if found != wanted {
        problems.push(format!("Ledger: the tags are {found:?}, must be {wanted:?}"));
    }
    if ledger["TableName"] != json!({ "Fn::Sub": "${AWS::StackName}-ledger" }) {
        problems.push("Ledger: the command does not find its name".to_owned());
    }
    problems
}

fn function(template: &Value) -> Problems {
    let properties = &the_function(template)["Properties"];
    let (variables, logging) =
        (&properties["Environment"]["Variables"], &properties["LoggingConfig"]);
    let table = json!({ "Ref": "IdempotencyTable" });
    let sizes = json!([properties["MemorySize"], properties["Timeout"]]);
    let expected = [
        ("LogFormat", &logging["LogFormat"], json!("JSON")),
        ("LoggingConfig", &json!(keys(logging)), json!(["LogFormat", "LogGroup"])),
        ("IDEMPOTENCY_TABLE", &variables["IDEMPOTENCY_TABLE"], table),
        ("PROVE_LEDGER", &variables["PROVE_LEDGER"], json!({ "Ref": "Ledger" })),
        ("PROVE_MISTAKE", &variables["PROVE_MISTAKE"], json!({ "Ref": "Mistake" })),
        ("Mistake", &template["Parameters"]["Mistake"]["Default"], json!("none")),
        ("MemorySize and Timeout", &sizes, json!([256, 10])),
    ];
    unlike("the function", &expected)
}

fn queues(template: &Value) -> Problems {
    let function = &the_function(template)["Properties"];
    let mut problems = Problems::new();
    let events = entries(&function["Events"]).into_iter();
    for (name, event) in events.filter(|(_, event)| event["Type"] == "SQS") {
        let event = &event["Properties"];
        if event["FunctionResponseTypes"] != json!(["ReportBatchItemFailures"]) {
            problems.push(format!("{name}: no ReportBatchItemFailures"));
        }
        let queue = referred(template, &event["Queue"]);
        let longest = function["Timeout"].as_u64().unwrap_or(u64::MAX);
        if queue["VisibilityTimeout"].as_u64().is_none_or(|visible| visible < 2 * longest) {
            problems.push(format!("{name}: VisibilityTimeout is {}", queue["VisibilityTimeout"]));
        }
        let expected = [
            ("maxReceiveCount", &queue["RedrivePolicy"]["maxReceiveCount"], json!(20)),
            ("MessageRetentionPeriod", &queue["MessageRetentionPeriod"], json!(7200)),
            ("MaximumConcurrency", &event["ScalingConfig"]["MaximumConcurrency"], json!(3)),
        ];
        problems.extend(unlike(name, &expected));
        let dead_letters = target(&queue["RedrivePolicy"]["deadLetterTargetArn"]);
        let dead_letters = &template["Resources"][dead_letters]["Properties"];
        if dead_letters["FifoQueue"] != queue["FifoQueue"] {
            problems.push(format!("{name}: its dead letters are of another kind"));
        }
    }
    problems
}

/// The requests of the command, and the permission that each needs.
const REQUESTS: [(&str, &str); 11] = [
    ("dynamodb.describe_table", "dynamodb:DescribeTable"),
    ("dynamodb.describe_time_to_live", "dynamodb:DescribeTimeToLive"),
    ("dynamodb.list_tags_of_resource", "dynamodb:ListTagsOfResource"),
    ("dynamodb.scan", "dynamodb:Scan"),
    ("sqs.list_queue_tags", "sqs:ListQueueTags"),
    ("sqs.send_message_batch", "sqs:SendMessage"),
    ("sqs.get_queue_attributes", "sqs:GetQueueAttributes"),
    ("sqs.receive_message", "sqs:ReceiveMessage"),
    ("sqs.delete_message", "sqs:DeleteMessage"),
    ("logs.list_tags_for_resource", "logs:ListTagsForResource"),
    ("logs.filter_log_events", "logs:FilterLogEvents"),
];

/// The page names the permissions of the requests that the command makes, and no others.
#[test]
fn the_page_names_what_the_command_calls() {
    let folder = root().join("crates/cli/src");
    let files = fs::read_dir(folder.join("prove")).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.push(folder.join("records/table.rs"));
    let mut called = BTreeSet::new();
    for path in paths {
        let text: String = fs::read_to_string(path).unwrap().split_whitespace().collect();
        let text = text.replace("client.describe", "clients.dynamodb.describe");
        for call in text.split("clients.").skip(1) {
            let name: String =
                call.chars().take_while(|c| c.is_ascii_lowercase() || "._".contains(*c)).collect();
            if name.contains('.') && name != "region.clone" && call[name.len()..].starts_with("()")
            {
                called.insert(name);
            }
        }
    }
    let known: BTreeSet<String> =
        REQUESTS.iter().map(|(request, _)| (*request).to_owned()).collect();
    assert_eq!(called, known);
    let page = read("docs/prove/README.md");
    let (_, page) = page.split_once("The command itself needs").unwrap();
    let (page, _) = page.split_once("Exit codes").unwrap();
    let named: BTreeSet<&str> = page.split('`').skip(1).step_by(2).collect();
    let needed: BTreeSet<&str> = REQUESTS.iter().map(|(_, permission)| *permission).collect();
    assert_eq!(named, needed);
}

/// Beside what every function needs: to write to the ledger.
fn permissions(template: &Value) -> Problems {
    let ledger = "Role: dynamodb:PutItem on {\"Fn::GetAtt\":\"Ledger.Arn\"} is ".to_owned();
    let surplus = ledger.clone() + "not needed";
    let mut found = grants::permissions(template);
    match found.iter().position(|problem| *problem == surplus) {
        Some(at) => drop(found.remove(at)),
        None => found.push(ledger + "missing"),
    }
    found
}
