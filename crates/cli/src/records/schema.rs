//! Whether the key of a table is the one that the store uses.

use aws_sdk_dynamodb::types::{KeyType, ScalarAttributeType, TableDescription};
use lambda_idempotency_dynamodb::Attributes;

/// What is wrong with the key of a table, in a sentence each.
pub(crate) fn problems(table: &TableDescription, names: &Attributes) -> Vec<String> {
    let mut problems = Vec::new();
    let keys = table.key_schema();
    let key_of = |kind: KeyType| keys.iter().find(|key| key.key_type == kind);
    let sort_key = names.sort_key.as_ref().map(|sort_key| &*sort_key.name);
    for (kind, what, needed) in
        [(KeyType::Hash, "partition key", Some(&*names.id)), (KeyType::Range, "sort key", sort_key)]
    {
        let found = key_of(kind).map(|key| key.attribute_name.as_str());
        match (needed, found) {
            (Some(needed), Some(found)) if needed == found => {
                let definition =
                    table.attribute_definitions().iter().find(|one| one.attribute_name == found);
                let kind = definition.map(|one| &one.attribute_type);
                if kind.is_some_and(|kind| *kind != ScalarAttributeType::S) {
                    problems.push(format!(
                        "The {what} `{found}` is of type {}, and has to be of type S: make another table.",
                        kind.map_or("?", ScalarAttributeType::as_str)
                    ));
                }
            }
            (Some(needed), Some(found)) => problems.push(format!(
                "The {what} is `{found}`, and the store uses `{needed}`: name the attribute in `Attributes`, or make \
                 another table."
            )),
            (Some(needed), None) => problems.push(format!(
                "The table has no {what}, and the store uses `{needed}`: make another table."
            )),
            (None, Some(found)) => problems.push(format!(
                "The table has the {what} `{found}`, and the store uses none: set `Attributes::sort_key`, or make \
                 another table."
            )),
            (None, None) => {}
        }
    }
    problems
}
