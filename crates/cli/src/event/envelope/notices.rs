//! Events of EventBridge, its Scheduler and S3.

use serde_json::{Value, json};

use super::shared::{ACCOUNT, REGION, arn, json_of};
use crate::event::Stamp;

pub(super) fn event_bridge(detail: &str, stamp: &mut Stamp) -> Result<Value, String> {
    Ok(json!({
        "version": "0",
        "id": stamp.id(),
        "detail-type": "OrderPlaced",
        "source": "orders.example",
        "account": ACCOUNT,
        "time": stamp.time(),
        "region": REGION,
        "resources": [],
        "detail": json_of(detail)?,
    }))
}

/// The input of a schedule, with the two members that say which occurrence of the schedule this is.
pub(super) fn scheduler(input: &str, stamp: &Stamp) -> Result<Value, String> {
    let mut input = json_of(input)?;
    let Value::Object(members) = &mut input else {
        return Err(
            "the input of a schedule has to be a JSON object, because it holds the schedule's ARN"
                .to_owned(),
        );
    };
    let second = stamp.time().split('.').next().unwrap_or_default().to_owned();
    members.insert("scheduleArn".to_owned(), json!(arn("scheduler", "schedule/default/nightly")));
    members.insert("scheduledTime".to_owned(), json!(format!("{second}Z")));
    Ok(input)
}

pub(super) fn s3(key: &str, stamp: &mut Stamp) -> Value {
    json!({
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": REGION,
        "eventTime": stamp.time(),
        "eventName": "ObjectCreated:Put",
        "userIdentity": { "principalId": "AWS:AIDAEXAMPLE" },
        "requestParameters": { "sourceIPAddress": "192.0.2.17" },
        "responseElements": { "x-amz-request-id": "D82B88E5F771F645", "x-amz-id-2": "EXAMPLE" },
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "828aa6fc-f7b5-4305-8584-487c791949c1",
            "bucket": {
                "name": "orders-example",
                "ownerIdentity": { "principalId": "A3EXAMPLE" },
                "arn": "arn:aws:s3:::orders-example",
            },
            "object": {
                "key": key,
                "size": 1024,
                "eTag": "b21b84d653bb07b05b1e6b33684dc11b",
                "sequencer": format!("00{:016X}", stamp.sequence()),
            },
        },
    })
}
