//! `records table check`: says what is wrong with a table.

use std::process::ExitCode;

use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    types::{BillingMode, TableDescription, TableStatus, TimeToLiveStatus},
};
use clap::{Args, Subcommand};
use lambda_idempotency_dynamodb::Attributes;
use serde_json::json;

use super::{connect::Options, print, print_json, schema, sdk, servers};
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

/// What was found out about a table.
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
        Err(error) => return Err(sdk::failure("DescribeTable", name, error)),
    };
    let Some(table) = described else {
        return Err(Failure::from("DynamoDB did not describe the table"));
    };
    of_description(&table, names, &mut findings);
    if let Some(index) = index {
        findings.problems.extend(schema::index_problems(&table, names, index));
    }
    let answer = client.describe_time_to_live().table_name(name).send().await;
    let answer = answer.map_err(|error| sdk::failure("DescribeTimeToLive", name, error))?;
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
    findings.problems.extend(schema::problems(table, names));
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
