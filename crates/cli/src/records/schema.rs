//! Whether the key of a table is the one that the store uses, and its index is as a sweep needs it.

use aws_sdk_dynamodb::types::{IndexStatus, KeyType, ScalarAttributeType, TableDescription};
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

/// What is wrong with the index of this name, in a sentence each.
pub(crate) fn index_problems(
    table: &TableDescription,
    names: &Attributes,
    index: &str,
) -> Vec<String> {
    let needed = &*names.unfinished;
    let wanted =
        format!("the partition key `{needed}` (S), no sort key, and the projection KEYS_ONLY");
    let indexes = table.global_secondary_indexes();
    let Some(found) = indexes.iter().find(|one| one.index_name() == Some(index)) else {
        return vec![format!(
            "The table has no global secondary index `{index}`: add it, with {wanted}."
        )];
    };
    let mut problems = Vec::new();
    let keys = found.key_schema();
    let is_needed = |name: &str, kind: &KeyType| name == needed && *kind == KeyType::Hash;
    let is_text = table
        .attribute_definitions()
        .iter()
        .any(|one| one.attribute_name == needed && one.attribute_type == ScalarAttributeType::S);
    let has_key = keys.iter().all(|key| is_needed(&key.attribute_name, &key.key_type));
    if keys.is_empty() || !has_key || !is_text {
        problems.push(format!(
            "The index `{index}` has another key, so that sweeps find nothing in it: make another one, with {wanted}."
        ));
    }
    match found.index_status() {
        Some(IndexStatus::Active | IndexStatus::Updating) | None => {}
        Some(status) => problems.push(format!("The index `{index}` is not usable now: {status}.")),
    }
    problems
}
