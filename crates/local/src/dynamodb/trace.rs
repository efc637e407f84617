//! What a request asked of single items, for people who look at a run afterwards.
//!
//! A request does not say which of its values is the key of a new item, so the key is the attribute `id`, else a text
//! with a `#` as the keys of idempotency records have it, else the first text.

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
    /// Whether a [`Fault`](crate::Fault) was injected into it.
    pub faulty: bool,
    /// The items that it is about, in its order.
    pub items: Vec<ItemRequest>,
}

/// What a request asked of one item.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemRequest {
    /// The table.
    pub table: String,
    /// What was asked.
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

/// What a request does with an item.
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

/// The items of a request, before it has an answer.
pub(crate) fn items(operation: &str, body: &Value) -> Vec<ItemRequest> {
    let table = body.get("TableName").and_then(Value::as_str).unwrap_or_default();
    let verb = match operation {
        "GetItem" => Verb::Read,
        "PutItem" => Verb::Put,
        "UpdateItem" => Verb::Update,
        "DeleteItem" => Verb::Delete,
        "BatchGetItem" => return reads(body),
        "TransactWriteItems" => return transacted(body),
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
    let refused = |code: Option<&str>| {
        code.is_some_and(|code| {
            code.contains("ConditionalCheckFailed") || code.contains("DuplicateItem")
        })
    };
    let whole = match status {
        Some(200..300) => ItemAnswer::Done,
        Some(_) if refused(answer.get("__type").and_then(Value::as_str)) => ItemAnswer::Refused,
        _ => ItemAnswer::Failed,
    };
    let members = answer.get("Responses").and_then(Value::as_array);
    for (position, item) in items.iter_mut().enumerate() {
        let error = members.and_then(|members| members.get(position)?.get("Error"));
        item.answer = match error {
            Some(error) if refused(error.get("Code").and_then(Value::as_str)) => {
                ItemAnswer::Refused
            }
            Some(_) => ItemAnswer::Failed,
            None => whole,
        };
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
