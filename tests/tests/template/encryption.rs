//! Encryption at rest: by the keys of AWS, or all of it by the one key that the parameter names.

use serde_json::{Value, json};

use crate::{
    checks::{Problems, expect},
    document::of_type,
};

/// The key of the parameter if there is one, or this.
fn key_or(other: Value) -> Value {
    json!({"Fn::If": ["HasKey", {"Ref": "KmsKeyArn"}, other]})
}

pub(crate) fn at_rest(template: &Value) -> Problems {
    let none = || json!({"Ref": "AWS::NoValue"});
    let ours = key_or(none());
    // SQS refuses a queue with both kinds of encryption.
    let sqs = json!({"Fn::If": ["HasKey", none(), true]});
    let mut expected: Vec<(String, &str, Value)> = vec![
        ("OrdersTopic".into(), "KmsMasterKeyId", key_or(json!("alias/aws/sns"))),
        ("OrdersLogs".into(), "KmsKeyId", ours.clone()),
    ];
    for (queue, _) in of_type(template, "AWS::SQS::Queue") {
        expected.push((queue.to_owned(), "KmsMasterKeyId", ours.clone()));
        expected.push((queue.to_owned(), "SqsManagedSseEnabled", sqs.clone()));
    }
    for (table, _) in of_type(template, "AWS::DynamoDB::Table") {
        let sse = json!({"SSEEnabled": true, "SSEType": "KMS", "KMSMasterKeyId": ours});
        expected.push((table.to_owned(), "SSESpecification", sse));
    }
    expected
        .into_iter()
        .flat_map(|(name, property, value)| {
            expect(template, &format!("/Resources/{name}/Properties/{property}"), value)
        })
        .collect()
}

/// The services use the key in the name of the function, and only they do.
pub(crate) fn permissions(template: &Value) -> Problems {
    let service = |name| json!({"Fn::Sub": format!("{name}.${{AWS::Region}}.${{AWS::URLSuffix}}")});
    let if_stream = json!({"Fn::If": ["HasStream", service("kinesis"), {"Ref": "AWS::NoValue"}]});
    let through = [service("dynamodb"), service("sqs"), if_stream];
    let statement = json!({
        "Sid": "Key",
        "Effect": "Allow",
        "Action": [
            "kms:Decrypt",
            "kms:DescribeKey",
            "kms:Encrypt",
            "kms:GenerateDataKey",
            "kms:GenerateDataKeyWithoutPlaintext",
            "kms:ReEncryptFrom",
            "kms:ReEncryptTo",
        ],
        "Resource": {"Ref": "KmsKeyArn"},
        "Condition": {"StringEquals": {"kms:ViaService": through}},
    });
    let policy = "/Resources/KeyPolicy";
    [
        expect(template, &format!("{policy}/Condition"), json!("HasKey")),
        expect(template, &format!("{policy}/Properties/RoleName"), json!({"Ref": "OrdersRole"})),
        expect(
            template,
            &format!("{policy}/Properties/PolicyDocument/Statement"),
            json!([statement]),
        ),
    ]
    .concat()
}
