//! The optional stream: failed records are retried within limits and then given up.

use serde_json::{Value, json};

use crate::checks::{Problems, expect};
use crate::document::{at, get_att, keys};

pub(crate) const MAPPING: &str = "/Resources/OrderStreamMapping";
pub(crate) const POLICY: &str = "/Resources/OrderStreamPolicy";

/// The mapping reads checkpoints, splits failed batches, and gives a record up after a limit.
pub(crate) fn mapping(template: &Value) -> Problems {
    let properties = format!("{MAPPING}/Properties");
    let expected =
        |property: &str, value: Value| expect(template, &format!("{properties}/{property}"), value);
    let mut problems = [
        expect(template, &format!("{MAPPING}/Type"), json!("AWS::Lambda::EventSourceMapping")),
        expect(template, &format!("{MAPPING}/Condition"), json!("HasStream")),
        expect(template, &format!("{MAPPING}/DependsOn"), json!("OrderStreamPolicy")),
        expected("FunctionName", json!({"Ref": "OrdersFunction"})),
        expected("EventSourceArn", json!({"Ref": "OrderStreamArn"})),
        expected("FunctionResponseTypes", json!(["ReportBatchItemFailures"])),
        expected("BisectBatchOnFunctionError", json!(true)),
        expected("DestinationConfig/OnFailure/Destination", get_att("FailedEventsQueue.Arn")),
    ]
    .concat();
    let bounds = [
        // Each delivery in an outage of the table takes five seconds: these are more than an hour.
        ("MaximumRetryAttempts", 1000, 10_000, "unlimited by default"),
        // A completed record answers its duplicates for 18 days: `retention` checks that.
        ("MaximumRecordAgeInSeconds", 60, 24 * 3600, "until the stream deletes them by default"),
    ];
    for (property, least, most, default) in bounds {
        let found = at(template, &format!("{properties}/{property}"));
        if found.as_u64().is_none_or(|found| !(least..=most).contains(&found)) {
            problems.push(format!(
                "{MAPPING}: {property} is {found} ({default}), must be {least} to {most}"
            ));
        }
    }
    problems
}

/// The function may read only that stream.
pub(crate) fn permissions(template: &Value) -> Problems {
    let actions = crate::grants::KINESIS;
    let properties = format!("{POLICY}/Properties");
    let statement = json!({
        "Sid": "Stream", "Effect": "Allow", "Action": actions, "Resource": {"Ref": "OrderStreamArn"},
    });
    let mut problems = [
        expect(template, &format!("{POLICY}/Condition"), json!("HasStream")),
        expect(template, &format!("{properties}/RoleName"), json!({"Ref": "OrdersRole"})),
        expect(template, &format!("{properties}/PolicyDocument/Statement"), json!([statement])),
    ]
    .concat();
    // No other resource grants the role permissions, but the key's (`encryption`): all others are in its own policies.
    for name in keys(at(template, "/Resources")) {
        let kind = at(template, &format!("/Resources/{name}/Type"));
        let grants = ["AWS::IAM::RolePolicy", "AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"];
        let known = ["KeyPolicy", "OrderStreamPolicy"].contains(&name);
        if !known && grants.iter().any(|grant| kind == grant) {
            problems.push(format!("{name}: grants rights that no check knows"));
        }
    }
    problems
}
