//! What a request to DynamoDB is about: which tables, which permissions, which capacity.

use std::collections::BTreeSet;

use serde_json::Value;

/// The operation in `X-Amz-Target: DynamoDB_20120810.PutItem`.
pub(crate) fn operation(target: &str) -> &str {
    target.rsplit('.').next().unwrap_or(target)
}

/// Whether the operation can report the capacity that it consumed.
pub(crate) fn reports_capacity(operation: &str) -> bool {
    matches!(
        operation,
        "PutItem"
            | "GetItem"
            | "UpdateItem"
            | "DeleteItem"
            | "Query"
            | "Scan"
            | "BatchGetItem"
            | "BatchWriteItem"
            | "TransactWriteItems"
            | "TransactGetItems"
            | "ExecuteStatement"
            | "BatchExecuteStatement"
            | "ExecuteTransaction"
    )
}

/// Whether the capacity consumed is for reading. The first word of a statement distinguishes them.
pub(crate) fn is_read(operation: &str, body: &Value) -> bool {
    match operation {
        "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems" => true,
        _ => statements(operation, body)
            .first()
            .is_some_and(|statement| verb(statement) == "PartiQLSelect"),
    }
}

/// The names of the tables that the request touches.
pub(crate) fn tables(operation: &str, body: &Value) -> BTreeSet<String> {
    let mut tables = BTreeSet::new();
    let name = |value: &Value| value.get("TableName").and_then(Value::as_str).map(str::to_owned);
    tables.extend(name(body));
    if let Some(items) = body.get("RequestItems").and_then(Value::as_object) {
        tables.extend(items.keys().cloned());
    }
    for member in transacted(body) {
        tables.extend(member.1.and_then(name));
    }
    for statement in statements(operation, body) {
        // The first name in double quotes is the table's: PartiQL writes strings in single ones.
        tables.extend(statement.split('"').nth(1).map(str::to_owned));
    }
    tables
}

/// The IAM actions that the request needs, without the `dynamodb:` before them.
pub(crate) fn actions(operation: &str, body: &Value) -> BTreeSet<String> {
    match operation {
        "ExecuteStatement" | "BatchExecuteStatement" | "ExecuteTransaction" => {
            statements(operation, body).iter().map(|statement| verb(statement).to_owned()).collect()
        }
        "TransactWriteItems" | "TransactGetItems" => transacted(body)
            .filter_map(|(kind, _)| match kind? {
                "ConditionCheck" => Some("ConditionCheckItem".to_owned()),
                kind => Some(format!("{kind}Item")),
            })
            .collect(),
        other => BTreeSet::from([other.to_owned()]),
    }
}

fn transacted(body: &Value) -> impl Iterator<Item = (Option<&str>, Option<&Value>)> {
    let items =
        body.get("TransactItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| {
        let member = item.as_object().and_then(|item| item.iter().next());
        (member.map(|(kind, _)| kind.as_str()), member.map(|(_, value)| value))
    })
}

fn statements<'a>(operation: &str, body: &'a Value) -> Vec<&'a str> {
    let list = match operation {
        "ExecuteStatement" => {
            return body.get("Statement").and_then(Value::as_str).into_iter().collect();
        }
        "BatchExecuteStatement" => body.get("Statements"),
        "ExecuteTransaction" => body.get("TransactStatements"),
        _ => None,
    };
    let list = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|member| member.get("Statement").and_then(Value::as_str)).collect()
}

fn verb(statement: &str) -> &'static str {
    match statement.split_whitespace().next().unwrap_or_default().to_ascii_uppercase().as_str() {
        "INSERT" => "PartiQLInsert",
        "UPDATE" => "PartiQLUpdate",
        "DELETE" => "PartiQLDelete",
        _ => "PartiQLSelect",
    }
}

/// The sum of the capacity units in a response.
pub(crate) fn capacity(response: &Value) -> f64 {
    let units =
        |consumed: &Value| consumed.get("CapacityUnits").and_then(Value::as_f64).unwrap_or(0.0);
    match response.get("ConsumedCapacity") {
        Some(Value::Array(tables)) => tables.iter().map(units).sum(),
        Some(one) => units(one),
        None => 0.0,
    }
}

/// How many conditional writes the response says were refused.
pub(crate) fn refused_conditions(response: &Value) -> u64 {
    let refused = |code: &str| {
        code.starts_with("ConditionalCheckFailed") || code.starts_with("DuplicateItem")
    };
    let whole =
        response.get("__type").and_then(Value::as_str).map(operation_of_type).is_some_and(refused);
    let member = |value: &&Value| value.get("Code").and_then(Value::as_str).is_some_and(refused);
    let members =
        response.get("Responses").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let reasons = response
        .get("CancellationReasons")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let members = members.iter().filter_map(|member| member.get("Error")).filter(member).count();
    let reasons = reasons.iter().filter(member).count();
    u64::from(whole) + (members + reasons) as u64
}

/// The name in `com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException`.
fn operation_of_type(kind: &str) -> &str {
    kind.rsplit('#').next().unwrap_or(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn statements_name_their_table_and_their_permission() {
        let body = json!({ "Statements": [
            { "Statement": "INSERT INTO \"idempotency\" VALUE {'id': ?}" },
            { "Statement": "UPDATE \"other\" SET a = ? WHERE id = ?" },
        ]});
        assert_eq!(tables("BatchExecuteStatement", &body), set(&["idempotency", "other"]));
        assert_eq!(
            actions("BatchExecuteStatement", &body),
            set(&["PartiQLInsert", "PartiQLUpdate"])
        );
        assert!(!is_read("BatchExecuteStatement", &body));
    }

    #[test]
    fn transactions_name_all_their_tables() {
        let body = json!({ "TransactItems": [
            { "Put": { "TableName": "orders" } }, { "ConditionCheck": { "TableName": "stock" } },
        ]});
        assert_eq!(tables("TransactWriteItems", &body), set(&["orders", "stock"]));
        assert_eq!(actions("TransactWriteItems", &body), set(&["PutItem", "ConditionCheckItem"]));
    }

    #[test]
    fn refused_conditions_are_found_in_all_forms_of_responses() {
        let single =
            json!({ "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException" });
        let batch = json!({ "Responses": [{ "Error": { "Code": "DuplicateItem" } }, { "TableName": "x" }] });
        let transaction = json!({ "CancellationReasons": [{ "Code": "None" }, { "Code": "ConditionalCheckFailed" }] });
        for response in [single, batch, transaction] {
            assert_eq!(refused_conditions(&response), 1, "{response}");
        }
    }

    #[test]
    fn capacity_is_summed_over_tables() {
        let response =
            json!({ "ConsumedCapacity": [{ "CapacityUnits": 1.5 }, { "CapacityUnits": 2.0 }] });
        assert!((capacity(&response) - 3.5).abs() < f64::EPSILON);
    }
}
