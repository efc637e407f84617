//! `records table`: makes a table, or says what is wrong with one.

use std::{process::ExitCode, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TableDescription, TableStatus, TimeToLiveSpecification, TimeToLiveStatus,
    },
};
use clap::{Args, Subcommand};
use lambda_idempotency_core::clock::{Clock as _, SystemClock};
use lambda_idempotency_dynamodb::Attributes;
use serde_json::json;

use super::{connect::Options, print, print_json, schema, sdk, servers};
use crate::failure::Failure;

/// How long a new table may take, in seconds.
const PATIENCE: u32 = 120;

/// Create the table, or check that it is as the store needs it
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

    /// Create the table; in DynamoDB with on-demand billing, and time to live by the expiration attribute
    ///
    /// For trying things out. Describe the table of a function in its template. In PostgreSQL, also brings a table of an
    /// earlier version to this one. Shows what it would do; `--yes` does it.
    Create {
        /// Do it
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) async fn run(
    connection: &Options,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    match &arguments.verb {
        Verb::Check { index } => check(connection, index.as_deref(), as_json).await,
        Verb::Create { yes } => create(connection, *yes, as_json).await,
    }
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
                "There is no table {name} in this Region and account: make it with `records table create`."
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

async fn create(connection: &Options, yes: bool, as_json: bool) -> Result<ExitCode, Failure> {
    if let Some(server) = connection.server()? {
        let what = server.create(yes).await?;
        return said(&server.name(), &what, yes, as_json);
    }
    let (name, names) = (connection.name()?, connection.attributes()?);
    let sort_key = names.sort_key.as_ref().map(|sort_key| sort_key.name.to_string());
    let keys = match &sort_key {
        None => format!("partition key `{}` (S)", names.id),
        Some(sort_key) => format!("partition key `{}` (S), sort key `{sort_key}` (S)", names.id),
    };
    let what =
        format!("table {name}: {keys}, on-demand billing, time to live by `{}`", names.expiration);
    if yes {
        let client = connection.client().await?;
        create_in_dynamodb(&client, &name, &names, sort_key.as_deref()).await?;
    }
    said(&name, &what, yes, as_json)
}

fn said(name: &str, what: &str, is_done: bool, as_json: bool) -> Result<ExitCode, Failure> {
    if as_json {
        print_json(&json!({ "table": name, "dry_run": !is_done, "created": is_done }))?;
    } else if is_done {
        print(&format!("Created the {what}."))?;
    } else {
        print(&format!("To create: {what}.\n\nNothing was created: add --yes to do it."))?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn create_in_dynamodb(
    client: &Client,
    name: &str,
    names: &Attributes,
    sort_key: Option<&str>,
) -> Result<(), Failure> {
    let mut request =
        client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let keys = [(Some(&*names.id), KeyType::Hash), (sort_key, KeyType::Range)];
    for (attribute, kind) in keys {
        let Some(attribute) = attribute else { continue };
        let definition = AttributeDefinition::builder()
            .attribute_name(attribute)
            .attribute_type(ScalarAttributeType::S);
        let key = KeySchemaElement::builder().attribute_name(attribute).key_type(kind);
        request = request.attribute_definitions(definition.build()?).key_schema(key.build()?);
    }
    match request.send().await {
        Ok(_) => {}
        Err(SdkError::ServiceError(error)) if error.err().is_resource_in_use_exception() => {
            let failure = Failure::from(format!("there is a table {name} already"));
            return Err(
                failure.remedy("`records table check` says whether it is as the store needs it.")
            );
        }
        Err(error) => return Err(sdk::failure("CreateTable", name, error)),
    }
    active(client, name).await?;
    let ttl = TimeToLiveSpecification::builder()
        .attribute_name(&*names.expiration)
        .enabled(true)
        .build()?;
    let request = client.update_time_to_live().table_name(name).time_to_live_specification(ttl);
    let done = request.send().await;
    done.map(|_| ())
        .map_err(|error| sdk::failure("UpdateTimeToLive", name, error).remedy(UNFINISHED))
}

const UNFINISHED: &str = "The table was created. Turn on its time to live: `records table check` says for which attribute.";

/// Waits until the table can be used.
async fn active(client: &Client, name: &str) -> Result<(), Failure> {
    for _ in 0..PATIENCE {
        let described = client.describe_table().table_name(name).send().await;
        match described {
            Ok(described) => {
                let status = described.table.and_then(|table| table.table_status);
                if status == Some(TableStatus::Active) {
                    return Ok(());
                }
            }
            // The description of a new table is eventually consistent.
            Err(SdkError::ServiceError(error)) if error.err().is_resource_not_found_exception() => {
            }
            Err(error) => {
                return Err(sdk::failure("DescribeTable", name, error).remedy(UNFINISHED));
            }
        }
        SystemClock.sleep(Duration::from_secs(1)).await;
    }
    let failure = Failure::from(format!("the table {name} was created, and is not active yet"));
    Err(failure.remedy(UNFINISHED))
}
