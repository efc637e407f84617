//! `records table create`

use std::{process::ExitCode, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    error::SdkError,
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TableStatus, TimeToLiveSpecification,
    },
};
use clap::Args;
use lambda_idempotency_core::clock::{Clock as _, SystemClock};
use lambda_idempotency_dynamodb::Attributes;
use serde_json::json;

use crate::{
    failure::Failure,
    records::{connect::Options, print, print_json, sdk},
};

/// How long a new table may take, in seconds.
const PATIENCE: u32 = 120;

/// Create the table; in DynamoDB with on-demand billing, and time to live by the expiration attribute
///
/// For trying things out. Describe the table of a function in its template. In PostgreSQL, also brings a table of an
/// earlier version to this one. Shows what it would do; `--yes` does it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Do it
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(
    connection: &Options,
    arguments: &Arguments,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    if let Some(server) = connection.server()? {
        let what = server.to_create()?;
        if arguments.yes {
            server.create().await?;
        }
        return said(&server.name(), &what, arguments.yes, as_json);
    }
    let (name, names) = (connection.name()?, connection.attributes()?);
    let sort_key = names.sort_key.as_ref().map(|sort_key| sort_key.name.to_string());
    let keys = match &sort_key {
        None => format!("partition key `{}` (S)", names.id),
        Some(sort_key) => format!("partition key `{}` (S), sort key `{sort_key}` (S)", names.id),
    };
    let what =
        format!("table {name}: {keys}, on-demand billing, time to live by `{}`", names.expiration);
    if arguments.yes {
        let client = connection.client().await?;
        create(&client, &name, &names, sort_key.as_deref()).await?;
    }
    said(&name, &what, arguments.yes, as_json)
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

async fn create(
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
