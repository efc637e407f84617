//! A role allows what its function and the pollers need, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    checks::Problems,
    document::{entries, get_att, items, of_type, referred, target},
    every::the_function,
};

pub(crate) const IDEMPOTENCY: [&str; 7] = [
    "dynamodb:GetItem",
    "dynamodb:BatchGetItem",
    "dynamodb:PutItem",
    "dynamodb:DeleteItem",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLUpdate",
    "dynamodb:PartiQLDelete",
];
const POLL: [&str; 3] = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
const LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];
pub(crate) const KINESIS: [&str; 5] = [
    "kinesis:DescribeStream",
    "kinesis:DescribeStreamSummary",
    "kinesis:GetRecords",
    "kinesis:GetShardIterator",
    "kinesis:ListShards",
];
const CHANGES: [&str; 3] =
    ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];

type Grants = BTreeSet<(String, String)>;

fn grant(grants: &mut Grants, actions: &[&str], resource: &Value) {
    grants.extend(actions.iter().map(|action| ((*action).to_owned(), resource.to_string())));
}

/// What the function and its event sources need.
fn needed(template: &Value) -> Grants {
    let function = &the_function(template)["Properties"];
    let table = target(&function["Environment"]["Variables"]["IDEMPOTENCY_TABLE"]);
    let logs = target(&function["LoggingConfig"]["LogGroup"]);
    let mut needed = Grants::new();
    grant(&mut needed, &IDEMPOTENCY, &get_att(&format!("{table}.Arn")));
    grant(&mut needed, &LOG, &get_att(&format!("{logs}.Arn")));
    for (_, event) in entries(&function["Events"]) {
        let properties = &event["Properties"];
        match event["Type"].as_str() {
            Some("SQS") => grant(&mut needed, &POLL, &properties["Queue"]),
            Some("Kinesis") => grant(&mut needed, &KINESIS, &properties["Stream"]),
            Some("DynamoDB") => {
                grant(&mut needed, &CHANGES, &properties["Stream"]);
                let streams = format!("${{{}.Arn}}/stream/*", target(&properties["Stream"]));
                grant(&mut needed, &["dynamodb:ListStreams"], &json!({ "Fn::Sub": streams }));
            }
            _ => {}
        }
        let failed = &properties["DestinationConfig"]["OnFailure"]["Destination"];
        if !failed.is_null() {
            grant(&mut needed, &["sqs:SendMessage"], failed);
        }
    }
    needed
}

/// The function's role, which is written out, grants exactly what is needed.
pub(crate) fn permissions(template: &Value) -> Problems {
    let function = &the_function(template)["Properties"];
    let role = referred(template, &function["Role"]);
    let mut problems = Problems::new();
    if role.is_null() || !function["Policies"].is_null() || !role["ManagedPolicyArns"].is_null() {
        problems.push("Role: SAM or a managed policy adds permissions".to_owned());
    }
    let others = ["AWS::IAM::RolePolicy", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"];
    if others.iter().any(|kind| !of_type(template, kind).is_empty()) {
        problems.push("Role: a policy elsewhere adds permissions".to_owned());
    }
    let mut granted = Grants::new();
    for policy in items(&role["Policies"]) {
        for statement in items(&policy["PolicyDocument"]["Statement"]) {
            let words = statement.as_object().into_iter().flat_map(|it| it.keys());
            if !words.into_iter().eq(["Action", "Effect", "Resource", "Sid"]) {
                problems.push(format!("Role: {} has other words", statement["Sid"]));
            }
            if statement["Effect"] != "Allow" {
                problems.push(format!("Role: Effect of {}", statement["Sid"]));
            }
            let actions = items(&statement["Action"]).iter().filter_map(Value::as_str);
            grant(&mut granted, &actions.collect::<Vec<_>>(), &statement["Resource"]);
        }
    }
    let needed = needed(template);
    let missing = needed.difference(&granted).map(|(action, on)| ("is missing", action, on));
    let surplus = granted.difference(&needed).map(|(action, on)| ("is not needed", action, on));
    let wrong = missing.chain(surplus);
    problems.extend(wrong.map(|(what, action, on)| format!("Role: {action} on {on} {what}")));
    problems
}
