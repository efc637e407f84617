//! A role allows what its function and the pollers need, and nothing else.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    Problems,
    document::{at, entries, get_att, items, of_type, referred, target},
    every::the_function,
};

pub(crate) const IDEMPOTENCY: [&str; 8] = [
    "dynamodb:GetItem",
    "dynamodb:BatchGetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:PartiQLInsert",
    "dynamodb:PartiQLUpdate",
    "dynamodb:PartiQLDelete",
];
const POLL: [&str; 3] = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];
const LOG: [&str; 2] = ["logs:CreateLogStream", "logs:PutLogEvents"];
const KINESIS: [&str; 5] = [
    "kinesis:DescribeStream",
    "kinesis:DescribeStreamSummary",
    "kinesis:GetRecords",
    "kinesis:GetShardIterator",
    "kinesis:ListShards",
];
const CHANGES: [&str; 3] =
    ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"];
const KEY: [&str; 7] = [
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
];

/// Actions, and the resource of each with the condition of its statement.
type Grants = BTreeSet<(String, String)>;

fn grant(grants: &mut Grants, actions: &[&str], resource: &Value) {
    grants.extend(actions.iter().map(|action| ((*action).to_owned(), resource.to_string())));
}

/// What the function and its event sources need.
fn needed(template: &Value) -> Grants {
    let function = &the_function(template)["Properties"];
    let variables = &function["Environment"]["Variables"];
    let arn = |reference: &Value| get_att(&format!("{}.Arn", target(reference)));
    let mut needed = Grants::new();
    grant(&mut needed, &IDEMPOTENCY, &arn(&variables["IDEMPOTENCY_TABLE"]));
    grant(&mut needed, &LOG, &arn(&function["LoggingConfig"]["LogGroup"]));
    if !variables["ORDERS_TABLE"].is_null() {
        grant(&mut needed, &["dynamodb:UpdateItem"], &arn(&variables["ORDERS_TABLE"]));
    }
    let events = entries(&function["Events"]).into_iter().map(|(_, event)| event);
    let others = of_type(template, "AWS::Lambda::EventSourceMapping").into_iter();
    for event in events.chain(others.map(|(_, mapping)| mapping)) {
        let properties = &event["Properties"];
        match event["Type"].as_str() {
            Some("SQS") => grant(&mut needed, &POLL, &properties["Queue"]),
            Some("Kinesis") => grant(&mut needed, &KINESIS, &properties["Stream"]),
            Some("AWS::Lambda::EventSourceMapping") => {
                grant(&mut needed, &KINESIS, &properties["EventSourceArn"]);
            }
            Some("DynamoDB") => {
                grant(&mut needed, &CHANGES, &properties["Stream"]);
                let streams = format!("${{{}.Arn}}/stream/*", target(&properties["Stream"]));
                grant(&mut needed, &["dynamodb:ListStreams"], &json!({ "Fn::Sub": streams }));
            }
            _ => {}
        }
        for failed in
            [&properties["DestinationConfig"], &function["EventInvokeConfig"]["DestinationConfig"]]
        {
            let failed = &failed["OnFailure"]["Destination"];
            grant(&mut needed, if failed.is_null() { &[] } else { &["sqs:SendMessage"] }, failed);
        }
    }
    // The services use the key in the name of the function, and only they do.
    let key = json!({ "Ref": "KmsKeyArn" });
    if at(template, "/Resources").to_string().contains(&key.to_string()) {
        let through = ["dynamodb", "sqs", "kinesis"].map(
            |name| json!({ "Fn::Sub": format!("{name}.${{AWS::Region}}.${{AWS::URLSuffix}}") }),
        );
        let condition = json!({ "StringEquals": { "kms:ViaService": through } });
        grant(&mut needed, &KEY, &json!([key, condition]));
    }
    needed
}

/// The function's role, which is written out, grants exactly what is needed.
pub(crate) fn permissions(template: &Value) -> Problems {
    let function = &the_function(template)["Properties"];
    let role = referred(template, &function["Role"]);
    let tracing =
        json!({ "Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/AWSXRayDaemonWriteAccess" });
    let mut problems = Problems::new();
    let is_managed = items(&role["ManagedPolicyArns"]).iter().any(|policy| *policy != tracing);
    if role.is_null() || !function["Policies"].is_null() || is_managed {
        problems.push("Role: SAM or a managed policy adds permissions".to_owned());
    }
    let others = ["AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"];
    if others.iter().any(|kind| !of_type(template, kind).is_empty()) {
        problems.push("Role: a policy elsewhere adds permissions".to_owned());
    }
    let beside = of_type(template, "AWS::IAM::RolePolicy").into_iter();
    let beside = beside.map(|(_, policy)| &policy["Properties"]);
    let mut granted = Grants::new();
    for policy in items(&role["Policies"]).iter().chain(beside) {
        for statement in items(&policy["PolicyDocument"]["Statement"]) {
            let words = entries(statement).into_iter().map(|(word, _)| word.as_str());
            if !words
                .filter(|word| *word != "Condition")
                .eq(["Action", "Effect", "Resource", "Sid"])
            {
                problems.push(format!("Role: {} has other words", statement["Sid"]));
            }
            if statement["Effect"] != "Allow" {
                problems.push(format!("Role: Effect of {}", statement["Sid"]));
            }
            let actions = items(&statement["Action"]).iter().filter_map(Value::as_str);
            let resource = match &statement["Condition"] {
                Value::Null => statement["Resource"].clone(),
                condition => json!([statement["Resource"], condition]),
            };
            grant(&mut granted, &actions.collect::<Vec<_>>(), &resource);
        }
    }
    let needed = needed(template);
    let missing = needed.difference(&granted).map(|(action, on)| ("is missing", action, on));
    let surplus = granted.difference(&needed).map(|(action, on)| ("is not needed", action, on));
    let wrong = missing.chain(surplus);
    problems.extend(wrong.map(|(what, action, on)| format!("Role: {action} on {on} {what}")));
    problems
}
