//! Records of streams and of Kafka topics.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};

use super::shared::{ACCOUNT, REGION, arn, json_of};
use crate::event::Stamp;

pub(super) fn kinesis(data: &str, stamp: &mut Stamp) -> Value {
    let sequence = format!("4964{:052}", stamp.sequence());
    let sequence = stamp.given().unwrap_or(sequence);
    json!({
        "kinesis": {
            "kinesisSchemaVersion": "1.0",
            "partitionKey": "customer-1",
            "sequenceNumber": sequence,
            "data": BASE64_STANDARD.encode(data),
            "approximateArrivalTimestamp": stamp.now_ms as f64 / 1000.0,
        },
        "eventSource": "aws:kinesis",
        "eventVersion": "1.0",
        "eventID": format!("shardId-000000000000:{sequence}"),
        "eventName": "aws:kinesis:record",
        "invokeIdentityArn": format!("arn:aws:iam::{ACCOUNT}:role/orders"),
        "awsRegion": REGION,
        "eventSourceARN": arn("kinesis", "stream/orders"),
    })
}

pub(super) fn dynamodb(item: &str, stamp: &mut Stamp) -> Result<Value, String> {
    let Value::Object(item) = json_of(item)? else {
        return Err("the payload of a DynamoDB record is an item: a JSON object".to_owned());
    };
    let image: Map<String, Value> =
        item.into_iter().map(|(name, value)| (name, attribute(value))).collect();
    let keys: Map<String, Value> = image.clone().into_iter().take(1).collect();
    Ok(json!({
        "eventID": stamp.id().replace('-', ""),
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": REGION,
        "dynamodb": {
            "ApproximateCreationDateTime": (stamp.now_ms / 1000) as f64,
            "Keys": keys,
            "SizeBytes": Value::Object(image.clone()).to_string().len(),
            "NewImage": image,
            "SequenceNumber": format!("1{:024}", stamp.sequence()),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": arn("dynamodb", "table/orders/stream/2026-01-01T00:00:00.000"),
    }))
}

/// A value as an attribute of an item.
fn attribute(value: Value) -> Value {
    match value {
        Value::String(text) => json!({ "S": text }),
        Value::Number(number) => json!({ "N": number.to_string() }),
        Value::Bool(bool) => json!({ "BOOL": bool }),
        Value::Null => json!({ "NULL": true }),
        Value::Array(list) => json!({ "L": list.into_iter().map(attribute).collect::<Vec<_>>() }),
        Value::Object(map) => {
            let map = map.into_iter().map(|(name, value)| (name, attribute(value)));
            json!({ "M": map.collect::<Map<_, _>>() })
        }
    }
}

pub(super) fn documentdb(document: &str, stamp: &mut Stamp) -> Result<Value, String> {
    let mut document = json_of(document)?;
    let id = json!({ "$oid": format!("{:024x}", stamp.sequence()) });
    if let Value::Object(members) = &mut document {
        members.insert("_id".to_owned(), id.clone());
    }
    Ok(json!({ "event": {
        "_id": { "_data": format!("01{:036x}", stamp.sequence()) },
        "clusterTime": { "$timestamp": { "t": stamp.now_ms / 1000, "i": 1 } },
        "documentKey": { "_id": id },
        "fullDocument": document,
        "ns": { "db": "shop", "coll": "orders" },
        "operationType": "insert",
    }}))
}

pub(super) fn kafka(value: &str, stamp: &mut Stamp) -> Value {
    json!({
        "topic": "orders",
        "partition": 0,
        "offset": stamp.sequence(),
        "timestamp": stamp.now_ms,
        "timestampType": "CREATE_TIME",
        "key": BASE64_STANDARD.encode("customer-1"),
        "value": BASE64_STANDARD.encode(value),
        "headers": [],
    })
}
