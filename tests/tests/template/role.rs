//! The function's role.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    checks::{FUNCTION, Problems, expect},
    document::{at, get_att, items, keys},
};

/// The role allows exactly the function's actions, each on one resource.
pub(crate) fn permissions(template: &Value) -> Problems {
    let expected: [(&str, &[&str]); 5] = [
        ("IdempotencyTable.Arn", &crate::grants::IDEMPOTENCY),
        ("OrdersTable.Arn", &["dynamodb:UpdateItem"]),
        ("OrdersQueue.Arn", &["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]),
        ("FailedEventsQueue.Arn", &["sqs:SendMessage"]),
        ("OrdersLogs.Arn", &["logs:CreateLogStream", "logs:PutLogEvents"]),
    ];
    let role = "/Resources/OrdersRole/Properties";
    let mut problems =
        expect(template, &format!("{FUNCTION}/Role"), json!({"Fn::GetAtt": "OrdersRole.Arn"}));
    if !at(template, &format!("{FUNCTION}/Policies")).is_null() {
        problems.push(format!("{FUNCTION}/Policies: ignored beside Role"));
    }
    problems.extend(expect(
        template,
        &format!("{role}/ManagedPolicyArns"),
        json!([{"Fn::If": [
            "Traced",
            {"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/AWSXRayDaemonWriteAccess"},
            {"Ref": "AWS::NoValue"},
        ]}]),
    ));

    let statements: Vec<&Value> = items(at(template, &format!("{role}/Policies")))
        .iter()
        .flat_map(|policy| items(&policy["PolicyDocument"]["Statement"]))
        .collect();
    for statement in &statements {
        let sid = &statement["Sid"];
        for word in keys(statement) {
            if !["Sid", "Effect", "Action", "Resource"].contains(&word) {
                problems.push(format!("{sid}: {word} is not expected"));
            }
        }
        if statement["Effect"] != "Allow" {
            problems.push(format!("{sid}: Effect is {}", statement["Effect"]));
        }
        for part in ["Action", "Resource"] {
            if statement[part].to_string().contains('*') {
                problems.push(format!("{sid}: a wildcard in {part}: {}", statement[part]));
            }
        }
        let known = expected.iter().any(|(arn, _)| statement["Resource"] == get_att(arn));
        if !known {
            problems.push(format!("{sid}: Resource {} is not expected", statement["Resource"]));
        }
    }
    for (arn, actions) in expected {
        let wanted: BTreeSet<&str> = actions.iter().copied().collect();
        let granted: BTreeSet<&str> = statements
            .iter()
            .filter(|statement| statement["Resource"] == get_att(arn))
            .flat_map(|statement| items(&statement["Action"]))
            .filter_map(Value::as_str)
            .collect();
        for missing in wanted.difference(&granted) {
            problems.push(format!("{arn}: {missing} is missing"));
        }
        for surplus in granted.difference(&wanted) {
            problems.push(format!("{arn}: {surplus} is not needed"));
        }
    }
    problems
}
