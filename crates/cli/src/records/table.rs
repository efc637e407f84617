//! `records table check`: says what is wrong with a table.

use std::process::ExitCode;

use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    types::{
        BillingMode, IndexStatus, KeyType, ScalarAttributeType, TableDescription, TableStatus,
        TimeToLiveStatus,
    },
};
use clap::{Args, Subcommand};
use lambda_idempotency_dynamodb::Attributes;
use serde_json::json;

use super::{
    connect::{self, Options},
    servers,
    view::{print, print_json},
};
use crate::failure::Failure;

/// Check that the table is as the store needs it
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Say what is wrong with the table, in a sentence for each problem; exit code 1 if there is one
    Check {
        /// Check this index too: that of records with unsent messages or a kept payload, as relays and recoveries use it
        #[arg(long, value_name = "NAME")]
        index: Option<String>,
    },
}

pub(crate) async fn run(
    connection: &Options,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let Verb::Check { index } = &arguments.verb;
    check(connection, index.as_deref(), as_json).await
}

/// The findings about a table.
#[derive(Default)]
struct Findings {
    /// The store does not work, or its items stay for ever.
    problems: Vec<String>,
    /// It works, and could be better.
    notes: Vec<String>,
}

async fn check(
    connection: &Options,
    index: Option<&str>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let (name, Findings { problems, notes }) = match connection.server()? {
        Some(server) => {
            servers::refuse(server.kind(), &[("--index", index.is_some())])?;
            (server.name(), Findings { problems: server.problems().await?, notes: vec![] })
        }
        None => {
            let (name, names, client) =
                (connection.name()?, connection.attributes()?, connection.client().await?);
            let findings = findings(&client, &name, &names, index).await?;
            (format!("table {name}"), findings)
        }
    };
    let is_fine = problems.is_empty();
    if as_json {
        print_json(&json!({ "table": name, "ok": is_fine, "problems": problems, "notes": notes }))?;
    } else {
        let notes = notes.iter().map(|note| format!("note: {note}\n"));
        let problems = problems.iter().map(|problem| format!("problem: {problem}\n"));
        let mut page: String = problems.chain(notes).collect();
        if is_fine {
            page.push_str(&format!("The {name} is as the store needs it."));
        }
        print(&page)?;
    }
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The problems of a table with the library's attributes.
#[cfg(feature = "prove")]
pub(crate) async fn problems(client: &Client, name: &str) -> Result<Vec<String>, Failure> {
    Ok(findings(client, name, &Attributes::default(), None).await?.problems)
}

async fn findings(
    client: &Client,
    name: &str,
    names: &Attributes,
    index: Option<&str>,
) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    let described = client.describe_table().table_name(name).send().await;
    let described = match described {
        Ok(described) => described.table,
        Err(SdkError::ServiceError(error)) if error.err().is_resource_not_found_exception() => {
            findings.problems.push(format!(
                "There is no table {name} in this Region and account: make it with the template of the function."
            ));
            return Ok(findings);
        }
        Err(error) => return Err(connect::failure("DescribeTable", name, error)),
    };
    let Some(table) = described else {
        return Err(Failure::from("DynamoDB did not describe the table"));
    };
    of_description(&table, names, &mut findings);
    if let Some(index) = index {
        findings.problems.extend(index_problems(&table, names, index));
    }
    let answer = client.describe_time_to_live().table_name(name).send().await;
    let answer = answer.map_err(|error| connect::failure("DescribeTimeToLive", name, error))?;
    let ttl = answer.time_to_live_description;
    let attribute = ttl.as_ref().and_then(|ttl| ttl.attribute_name.as_deref());
    let expiration = &names.expiration;
    match ttl.as_ref().and_then(|ttl| ttl.time_to_live_status.as_ref()) {
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) if attribute == Some(expiration) => {}
        Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling) => {
            findings.problems.push(format!(
                "Time to live is on for the attribute `{}`, and records expire by `{expiration}`: they are never deleted.",
                attribute.unwrap_or_default()
            ));
        }
        _ => findings.problems.push(format!(
            "Time to live is off, so that expired records are never deleted: turn it on for the attribute `{expiration}`."
        )),
    }
    Ok(findings)
}

fn of_description(table: &TableDescription, names: &Attributes, findings: &mut Findings) {
    match &table.table_status {
        Some(TableStatus::Active | TableStatus::Updating) | None => {}
        Some(status) => findings.problems.push(format!("The table is not usable now: {status}.")),
    }
    findings.problems.extend(key_problems(table, names));
    let billing = table.billing_mode_summary().and_then(|summary| summary.billing_mode.as_ref());
    // Tables that were always provisioned have no summary, and a capacity above 0.
    let units = table.provisioned_throughput().and_then(|units| units.write_capacity_units);
    let is_on_demand = billing == Some(&BillingMode::PayPerRequest);
    if let (false, Some(units @ 1..)) = (is_on_demand, units) {
        findings.notes.push(format!(
            "The table has a fixed capacity of {units} write units a second, and each record takes two: a burst is \
             throttled and returns to its source. On-demand billing has no such limit."
        ));
    }
}

/// The problems of the key of a table, in a sentence each.
pub(crate) fn key_problems(table: &TableDescription, names: &Attributes) -> Vec<String> {
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

/// The problems of the index of this name, in a sentence each.
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
