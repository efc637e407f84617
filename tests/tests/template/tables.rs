//! The tables.

use serde_json::{Value, json};

use crate::checks::{Problems, expect};

/// Key, TTL, billing, and what happens to the data when a table is deleted or replaced.
pub(crate) fn tables(template: &Value) -> Problems {
    let mut problems = Problems::new();
    for (table, key, deletion) in
        [("IdempotencyTable", "id", "Delete"), ("OrdersTable", "orderId", "Retain")]
    {
        let resource = format!("/Resources/{table}");
        for (property, expected) in [
            ("Type", json!("AWS::DynamoDB::Table")),
            ("DeletionPolicy", json!(deletion)),
            ("UpdateReplacePolicy", json!("Retain")),
            ("Properties/BillingMode", json!("PAY_PER_REQUEST")),
            ("Properties/KeySchema", json!([{"AttributeName": key, "KeyType": "HASH"}])),
            (
                "Properties/AttributeDefinitions",
                json!([{"AttributeName": key, "AttributeType": "S"}]),
            ),
        ] {
            problems.extend(expect(template, &format!("{resource}/{property}"), expected));
        }
    }
    problems.extend(expect(
        template,
        "/Resources/IdempotencyTable/Properties/TimeToLiveSpecification",
        json!({"AttributeName": "expiration", "Enabled": true}),
    ));
    problems
}
