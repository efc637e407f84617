//! A request to DynamoDB and its answer: which items and tables, which permissions, which capacity.
//!
//! A request does not say which of its values is the key of a new item, so the key is the attribute `id`, else a text
//! with a `#` as the keys of idempotency records have it, else the first text.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;

/// A request of the function to DynamoDB, as its proxy saw it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreRequest {
    /// When it arrived.
    pub began: Instant,
    /// How long it took, faults included.
    pub took: Duration,
    /// `PutItem`, `BatchExecuteStatement`, ...
    pub operation: String,
    /// The items that it is about, in its order.
    pub items: Vec<ItemRequest>,
}

/// The part of a request that is about one item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemRequest {
    /// The table.
    pub table: String,
    /// The verb of the request.
    pub verb: Verb,
    /// The key, as far as the request shows it.
    pub key: String,
    /// The status that an idempotency record gets: `INPROGRESS`, `COMPLETED` or `FAILED`.
    pub status: Option<String>,
    /// The record of the event for which the key is claimed, as an idempotency record names it.
    pub record: Option<String>,
    /// The answer that the function got.
    pub answer: ItemAnswer,
}

/// The verb of a request for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads it.
    Read,
    /// Writes it as a whole, or inserts it.
    Put,
    /// Changes some of its attributes.
    Update,
    /// Deletes it.
    Delete,
    /// Checks a condition on it, in a transaction.
    Check,
}

/// The answer to a request for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemAnswer {
    /// It was done.
    Done,
    /// Its condition did not hold.
    Refused,
    /// An error, or no answer; it may have been applied all the same.
    Failed,
}

/// The operation in `X-Amz-Target: DynamoDB_20120810.PutItem`.
pub(crate) fn operation(target: &str) -> &str {
    target.rsplit('.').next().unwrap_or(target)
}

/// Whether the operation can report the capacity that it consumed.
pub(crate) fn reports_capacity(operation: &str) -> bool {
    let is_of_items = ["Item", "Items", "Query", "Scan"].iter().any(|end| operation.ends_with(end));
    is_of_items || is_partiql(operation)
}

fn is_partiql(operation: &str) -> bool {
    matches!(operation, "ExecuteStatement" | "BatchExecuteStatement" | "ExecuteTransaction")
}

/// Whether the capacity consumed is for reading. The first word of a statement distinguishes them.
pub(crate) fn is_read(operation: &str, items: &[ItemRequest]) -> bool {
    match operation {
        "GetItem" | "Query" | "Scan" | "BatchGetItem" | "TransactGetItems" => true,
        _ => is_partiql(operation) && items.first().is_some_and(|item| item.verb == Verb::Read),
    }
}

/// The names of the tables that the request touches.
pub(crate) fn tables(body: &Value, items: &[ItemRequest]) -> BTreeSet<String> {
    let named = body.get("TableName").and_then(Value::as_str).map(str::to_owned);
    let members = body.get("RequestItems").and_then(Value::as_object);
    let members = members.into_iter().flat_map(|members| members.keys().cloned());
    named.into_iter().chain(members).chain(items.iter().map(|item| item.table.clone())).collect()
}

/// The IAM actions that the request needs, without the `dynamodb:` before them.
pub(crate) fn actions(operation: &str, items: &[ItemRequest]) -> BTreeSet<String> {
    let is_transaction = matches!(operation, "TransactWriteItems" | "TransactGetItems");
    let action = |item: &ItemRequest| match (item.verb, is_transaction) {
        (Verb::Read, true) => "GetItem",
        (Verb::Put, true) => "PutItem",
        (Verb::Update, true) => "UpdateItem",
        (Verb::Delete, true) => "DeleteItem",
        (Verb::Check, _) => "ConditionCheckItem",
        (Verb::Read, false) => "PartiQLSelect",
        (Verb::Put, false) => "PartiQLInsert",
        (Verb::Update, false) => "PartiQLUpdate",
        (Verb::Delete, false) => "PartiQLDelete",
    };
    if is_transaction || is_partiql(operation) {
        items.iter().map(|item| action(item).to_owned()).collect()
    } else {
        BTreeSet::from([operation.to_owned()])
    }
}

/// The items of a request, before it has an answer.
pub(crate) fn items(operation: &str, body: &Value) -> Vec<ItemRequest> {
    let table = body.get("TableName").and_then(Value::as_str).unwrap_or_default();
    let verb = match operation {
        "GetItem" => Verb::Read,
        "PutItem" => Verb::Put,
        "UpdateItem" => Verb::Update,
        "DeleteItem" => Verb::Delete,
        "BatchGetItem" => return reads(body),
        "TransactWriteItems" | "TransactGetItems" => return transacted(body),
        "ExecuteStatement" => return statement(body).into_iter().collect(),
        "BatchExecuteStatement" => return list(body, "Statements").filter_map(statement).collect(),
        "ExecuteTransaction" => {
            return list(body, "TransactStatements").filter_map(statement).collect();
        }
        _ => return Vec::new(),
    };
    vec![single(table, verb, body)]
}

/// Adds the answer to the items: that of the whole request, or of each member of a batch.
pub(crate) fn answered(items: &mut [ItemRequest], status: Option<u16>, answer: &Value) {
    let whole = match status {
        Some(200..300) => ItemAnswer::Done,
        Some(_) if is_refused(answer, "__type") => ItemAnswer::Refused,
        _ => ItemAnswer::Failed,
    };
    let members = answer.get("Responses").and_then(Value::as_array);
    for (position, item) in items.iter_mut().enumerate() {
        let error = members.and_then(|members| members.get(position)?.get("Error"));
        item.answer = match error {
            Some(error) if is_refused(error, "Code") => ItemAnswer::Refused,
            Some(_) => ItemAnswer::Failed,
            None => whole,
        };
    }
}

/// How many conditional writes the response says were refused.
pub(crate) fn refused_conditions(response: &Value) -> u64 {
    let members = list(response, "Responses").filter_map(|member| member.get("Error"));
    let codes = members.chain(list(response, "CancellationReasons"));
    let members = codes.filter(|code| is_refused(code, "Code")).count();
    u64::from(is_refused(response, "__type")) + members as u64
}

/// Whether an error says that a condition did not hold: in `com.amazonaws.dynamodb.v20120810#DuplicateItem`.
fn is_refused(error: &Value, member: &str) -> bool {
    error.get(member).and_then(Value::as_str).is_some_and(|code| {
        code.contains("ConditionalCheckFailed") || code.contains("DuplicateItem")
    })
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

fn list<'b>(body: &'b Value, name: &str) -> impl Iterator<Item = &'b Value> + use<'b> {
    body.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn new(table: &str, verb: Verb, key: String, status: Option<String>) -> ItemRequest {
    let (table, record) = (table.to_owned(), None);
    ItemRequest { table, verb, key, status, record, answer: ItemAnswer::Failed }
}

fn single(table: &str, verb: Verb, body: &Value) -> ItemRequest {
    let values = ["Item", "ExpressionAttributeValues"].iter().find_map(|name| body.get(name));
    let status = values.into_iter().flat_map(texts).find(|text| is_status(text));
    let key = body.get("Key").or_else(|| body.get("Item")).map(key).unwrap_or_default();
    let members = values.and_then(Value::as_object).into_iter().flat_map(|values| values.values());
    let record = members.filter_map(record).next();
    ItemRequest { record, ..new(table, verb, key, status) }
}

fn reads(body: &Value) -> Vec<ItemRequest> {
    let tables = body.get("RequestItems").and_then(Value::as_object).into_iter().flatten();
    let keys = tables.flat_map(|(table, request)| {
        list(request, "Keys").map(move |item| new(table, Verb::Read, key(item), None))
    });
    keys.collect()
}

fn transacted(body: &Value) -> Vec<ItemRequest> {
    let members = list(body, "TransactItems").filter_map(Value::as_object).flatten();
    let write = members.filter_map(|(kind, member)| {
        let verb = match kind.as_str() {
            "Put" => Verb::Put,
            "Update" => Verb::Update,
            "Delete" => Verb::Delete,
            "Get" => Verb::Read,
            "ConditionCheck" => Verb::Check,
            _ => return None,
        };
        Some(single(member.get("TableName")?.as_str()?, verb, member))
    });
    write.collect()
}

/// A statement of PartiQL: its values are parameters, those that are set before those of the condition.
fn statement(member: &Value) -> Option<ItemRequest> {
    let text = member.get("Statement")?.as_str()?;
    let verb = match text.split_whitespace().next()?.to_ascii_uppercase().as_str() {
        "INSERT" => Verb::Put,
        "UPDATE" => Verb::Update,
        "DELETE" => Verb::Delete,
        _ => Verb::Read,
    };
    let texts: Vec<String> = list(member, "Parameters").filter_map(string).collect();
    let changes = matches!(verb, Verb::Put | Verb::Update);
    let status = texts.iter().find(|text| changes && is_status(text)).cloned();
    let key = texts.iter().find(|text| text.contains('#')).or_else(|| texts.first()).cloned();
    let record = list(member, "Parameters").filter_map(record).next();
    let item = new(text.split('"').nth(1)?, verb, key.unwrap_or_default(), status);
    Some(ItemRequest { record, ..item })
}

/// The record of an event in the provenance of a claim, if the attribute is one.
fn record(attribute: &Value) -> Option<String> {
    let provenance = attribute.get("M").filter(|map| map.get("claimed_at").is_some())?;
    string(provenance.get("record")?)
}

/// The key of an item, or of attributes that are a key.
fn key(item: &Value) -> String {
    let named = item.get("id").and_then(string);
    let of_record = || texts(item).find(|text| text.contains('#'));
    named.or_else(of_record).or_else(|| texts(item).next()).unwrap_or_default()
}

fn texts(item: &Value) -> impl Iterator<Item = String> + '_ {
    item.as_object().into_iter().flat_map(|item| item.values()).filter_map(string)
}

fn string(value: &Value) -> Option<String> {
    value.get("S").and_then(Value::as_str).map(str::to_owned)
}

fn is_status(text: &str) -> bool {
    matches!(text, "INPROGRESS" | "COMPLETED" | "FAILED")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn statements_and_transactions_name_their_tables_and_permissions() {
        let statements = json!({ "Statements": [
            { "Statement": "INSERT INTO \"idempotency\" VALUE {'id': ?}" },
            { "Statement": "UPDATE \"other\" SET a = ? WHERE id = ?" },
        ]});
        let members = json!({ "TransactItems": [
            { "Put": { "TableName": "orders" } }, { "ConditionCheck": { "TableName": "stock" } },
        ]});
        for (operation, body, named, allowed) in [
            (
                "BatchExecuteStatement",
                statements,
                ["idempotency", "other"],
                ["PartiQLInsert", "PartiQLUpdate"],
            ),
            ("TransactWriteItems", members, ["orders", "stock"], ["ConditionCheckItem", "PutItem"]),
        ] {
            let items = items(operation, &body);
            assert_eq!(Vec::from_iter(tables(&body, &items)), named);
            assert_eq!(Vec::from_iter(actions(operation, &items)), allowed);
            assert!(!is_read(operation, &items));
        }
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

    fn text(value: &str) -> Value {
        json!({ "S": value })
    }

    #[test]
    fn a_single_claim_and_its_refusal_are_read() {
        let body = json!({ "TableName": "idempotency",
            "Item": { "application": text("shop"), "id": text("place#ab"), "status": text("INPROGRESS"),
                "provenance": { "M": { "claimed_at": { "N": "1" }, "record": text("m-1") } } } });
        let mut items = items("PutItem", &body);
        answered(&mut items, Some(400), &json!({ "__type": "x#ConditionalCheckFailedException" }));
        let expected = ItemRequest {
            table: "idempotency".to_owned(),
            verb: Verb::Put,
            key: "place#ab".to_owned(),
            status: Some("INPROGRESS".to_owned()),
            record: Some("m-1".to_owned()),
            answer: ItemAnswer::Refused,
        };
        assert_eq!(items, [expected]);
    }

    #[test]
    fn members_of_a_batch_have_answers_of_their_own() {
        let update = |status: &str, id: &str| {
            json!({ "Statement": "UPDATE \"idempotency\" SET \"status\" = ? WHERE \"id\" = ? AND \"status\" = ?",
                "Parameters": [text(status), { "M": { "claimed_at": { "N": "1" }, "record": text("m-2") } },
                    text(id), text("INPROGRESS")] })
        };
        let body = json!({ "Statements": [update("COMPLETED", "p#a"), update("FAILED", "p#b")] });
        let mut items = items("BatchExecuteStatement", &body);
        let answer =
            json!({ "Responses": [{}, { "Error": { "Code": "ConditionalCheckFailed" } }] });
        answered(&mut items, Some(200), &answer);
        let read: Vec<_> = items
            .iter()
            .map(|item| (item.key.as_str(), item.status.as_deref(), item.answer))
            .collect();
        assert_eq!(
            read,
            [
                ("p#a", Some("COMPLETED"), ItemAnswer::Done),
                ("p#b", Some("FAILED"), ItemAnswer::Refused)
            ]
        );
        assert!(items.iter().all(|item| item.record.as_deref() == Some("m-2")));
    }

    #[test]
    fn reads_and_updates_name_their_key() {
        let body =
            json!({ "RequestItems": { "idempotency": { "Keys": [{ "id": text("p#a") }] } } });
        let read = &items("BatchGetItem", &body)[0];
        assert_eq!((read.verb, read.key.as_str()), (Verb::Read, "p#a"));
        let body = json!({ "TableName": "orders", "Key": { "orderId": text("o-1") },
            "ExpressionAttributeValues": { ":one": { "N": "1" } } });
        let update = &items("UpdateItem", &body)[0];
        assert_eq!(
            (update.verb, update.key.as_str(), update.status.as_ref()),
            (Verb::Update, "o-1", None)
        );
    }

    #[test]
    fn a_request_without_an_answer_failed() {
        let mut items =
            items("DeleteItem", &json!({ "TableName": "t", "Key": { "id": text("a") } }));
        answered(&mut items, None, &Value::Null);
        assert_eq!(items[0].answer, ItemAnswer::Failed);
    }
}
