//! A [`Guard`] as a condition: an expression for a single write, a predicate for a statement. And what an update changes, as
//! an expression whose names and values join those of the condition.
//!
//! Both are made of the same [`Term`]s, one for each attribute the guard names, so that the two
//! forms cannot mean different things.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_core::{
    record::{IdempotencyRecord, Status},
    store::{Extent, Guard, Write},
};

use crate::{
    attributes::Attributes,
    item::{Field, Item, changes},
    value::{millis, seconds, status, token},
};

/// Room for the text of a term.
const TERM: usize = 40;

/// A condition on one attribute: equal to a value, or absent.
pub(crate) struct Term<'n> {
    /// The placeholder in an expression, without `#` or `:`.
    alias: &'static str,
    name: &'n str,
    value: Option<AttributeValue>,
}

/// The terms of a guard; all must hold.
pub(crate) fn terms<'n>(guard: &Guard, names: &'n Attributes) -> Vec<Term<'n>> {
    let term = |alias, name: &'n str, value| Term { alias, name, value };
    match guard {
        Guard::Absent => vec![term("id", &names.id, None)],
        Guard::OwnedBy(owner) => vec![
            term("status", &names.status, Some(status(Status::InProgress))),
            term("owner", &names.owner, Some(token(*owner))),
        ],
        Guard::Unchanged(seen) => vec![
            term("status", &names.status, Some(status(seen.status))),
            term("owner", &names.owner, seen.owner.map(token)),
            term("last_owner", &names.last_owner, seen.last_owner.map(token)),
            term("lease", &names.in_progress_expiration, seen.lease_until.map(millis)),
            term("expiry", &names.expiration, Some(seconds(seen.expires_at))),
        ],
    }
}

/// A condition expression with its names and values.
#[derive(Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) expression: String,
    pub(crate) names: HashMap<String, String>,
    /// `None` rather than empty, which DynamoDB refuses.
    pub(crate) values: Option<Item>,
}

/// The guard as a `ConditionExpression`.
///
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html>
pub(crate) fn condition(guard: &Guard, names: &Attributes) -> Condition {
    let terms = terms(guard, names);
    let count = terms.len();
    let expression = String::with_capacity(count.saturating_mul(TERM));
    let mut condition =
        Condition { expression, names: HashMap::with_capacity(count), values: None };
    for Term { alias, name, value } in terms {
        let text = &mut condition.expression;
        let mut add = |parts: &[&str]| parts.iter().for_each(|part| text.push_str(part));
        if !condition.names.is_empty() {
            add(&[" AND "]);
        }
        condition.names.insert(["#", alias].concat(), name.to_owned());
        if let Some(value) = value {
            add(&["#", alias, " = :", alias]);
            let values = condition.values.get_or_insert_with(|| HashMap::with_capacity(count));
            values.insert([":", alias].concat(), value);
        } else {
            add(&["attribute_not_exists(#", alias, ")"]);
        }
    }
    condition
}

/// Whether the rest of the record stays as it is stored: a settlement follows from what its claim has stored.
pub(crate) fn is_update(write: &Write) -> bool {
    matches!(write.guard, Guard::OwnedBy(_)) || write.extent() != Extent::Record
}

/// What a write changes, as an expression, and the condition that has its names and values.
pub(crate) fn update(
    names: &Attributes,
    write: &Write,
    record: &IdempotencyRecord,
) -> (String, Condition) {
    let mut condition = condition(&write.guard, names);
    (update_expression(changes(names, write, record), &mut condition), condition)
}

/// The fields as an `UpdateExpression`, whose names and values join those of the condition.
///
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html>
fn update_expression(fields: Vec<Field<'_>>, condition: &mut Condition) -> String {
    let (mut set, mut remove) = (String::with_capacity(64), String::with_capacity(64));
    condition.names.reserve(fields.len());
    for (position, (name, value)) in fields.into_iter().enumerate() {
        let position = position.to_string();
        let alias = ["#", &position].concat();
        let is_set = value.is_some();
        let (clause, word) = if is_set { (&mut set, "SET ") } else { (&mut remove, "REMOVE ") };
        clause.push_str(if clause.is_empty() { word } else { ", " });
        clause.push_str(&alias);
        condition.names.insert(alias, name.to_owned());
        if let Some(value) = value {
            let alias = [":", &position].concat();
            clause.extend([" = ", &alias]);
            condition.values.get_or_insert_default().insert(alias, value);
        }
    }
    if !set.is_empty() && !remove.is_empty() {
        set.push(' ');
    }
    set + &remove
}

/// The terms as the end of a `WHERE` clause, each beginning with `AND`; they join `text`, and their
/// values `parameters`.
///
/// `IS MISSING` is how PartiQL says that an attribute is missing; `IS NULL` would mean one that
/// is there and null:
/// <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-functions.missing.html>
pub(crate) fn predicate(
    terms: Vec<Term<'_>>,
    text: &mut String,
    parameters: &mut Vec<AttributeValue>,
) {
    for Term { name, value, .. } in terms {
        text.push_str(" AND \"");
        text.push_str(name);
        if let Some(value) = value {
            text.push_str("\" = ?");
            parameters.push(value);
        } else {
            text.push_str("\" IS MISSING");
        }
    }
}
