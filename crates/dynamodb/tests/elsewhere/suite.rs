//! Runs all scenarios, in all ways of writing, in a new table. Only known deviations may fail.

use std::{any::Any, collections::BTreeMap, panic::AssertUnwindSafe, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
        TableStatus,
    },
};
use futures_util::{FutureExt, StreamExt, stream};
use lambda_idempotency_core::{record::Owner, store::Store};
use lambda_idempotency_dynamodb::{DynamoDbStore, DynamoDbStoreBuilder};
use lambda_idempotency_testkit::conformance::{SCENARIOS, Scenario};

use crate::company::InCompany;

/// How many scenarios run at once: they wait for the network most of the time.
const AT_ONCE: usize = 8;

/// A scenario that an implementation fails, and why.
pub(crate) struct Deviation {
    pub(crate) scenario: &'static str,
    pub(crate) way: Way,
    pub(crate) reason: &'static str,
}

/// The ways in which a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// The default: a single write as a request, several writes as statements.
    Default,
    /// Every write as a single request.
    WithoutPartiql,
    /// Every write as a statement.
    InCompany,
}

/// Runs the suite in a new table, and deletes the table.
pub(crate) async fn conforms(client: &Client, deviations: &[Deviation]) {
    let table = format!("idempotency-test-{}", Owner::random().unwrap());
    let created = create(client, &table).await;
    let outcome = match created {
        Ok(()) => AssertUnwindSafe(run(client, &table, deviations)).catch_unwind().await,
        Err(error) => Err(error),
    };
    let deleted = client.delete_table().table_name(&table).send().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    deleted.unwrap_or_else(|error| panic!("table {table} could not be deleted: {error:?}"));
}

async fn create(client: &Client, table: &str) -> Result<(), Box<dyn Any + Send>> {
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build();
    let attribute = AttributeDefinition::builder()
        .attribute_name("id")
        .attribute_type(ScalarAttributeType::S)
        .build();
    let request = client
        .create_table()
        .table_name(table)
        .key_schema(key.unwrap())
        .attribute_definitions(attribute.unwrap())
        .billing_mode(BillingMode::PayPerRequest);
    request
        .send()
        .await
        .unwrap_or_else(|error| panic!("table {table} could not be created: {error:?}"));
    for _ in 0..120 {
        let described = client.describe_table().table_name(table).send().await;
        let status = described.ok().and_then(|d| d.table?.table_status);
        if status == Some(TableStatus::Active) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Err(Box::new(format!("table {table} is not active after a minute")))
}

async fn run(client: &Client, table: &str, deviations: &[Deviation]) {
    let builder = || -> DynamoDbStoreBuilder {
        DynamoDbStore::builder(client.clone(), table).attempt_timeout(Duration::from_secs(20))
    };
    let ways: [(Way, Box<dyn Store>); 3] = [
        (Way::Default, Box::new(builder().build().unwrap())),
        (Way::WithoutPartiql, Box::new(builder().without_partiql().build().unwrap())),
        (Way::InCompany, Box::new(InCompany(builder().build().unwrap()))),
    ];
    // Scenarios fail by panicking. The hook is silent, and all failures are reported together below.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut failed = BTreeMap::new();
    for (way, store) in &ways {
        let mut running = stream::iter(SCENARIOS)
            .map(|scenario| async move { (scenario.name, failure(scenario, &**store).await) })
            .buffer_unordered(AT_ONCE);
        while let Some((name, failure)) = running.next().await {
            failed.extend(failure.map(|message| ((name, *way), message)));
        }
    }
    std::panic::set_hook(hook);
    judge(failed, deviations, SCENARIOS.len() * ways.len());
}

async fn failure(scenario: &Scenario, store: &dyn Store) -> Option<String> {
    let panic = AssertUnwindSafe((scenario.run)(store)).catch_unwind().await.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
}

/// Every failure is a known deviation, and every known deviation still fails.
fn judge(failed: BTreeMap<(&str, Way), String>, deviations: &[Deviation], ran: usize) {
    let mut wrong = Vec::new();
    for ((scenario, way), message) in &failed {
        if !deviations.iter().any(|d| d.scenario == *scenario && d.way == *way) {
            wrong.push(format!("{scenario}, {way:?}: {message}"));
        }
    }
    for Deviation { scenario, way, reason } in deviations {
        if !failed.contains_key(&(*scenario, *way)) {
            wrong.push(format!("{scenario}, {way:?} passes; remove the deviation: {reason}"));
        }
    }
    println!("{ran} runs, {} of them fail as known", deviations.len());
    assert!(wrong.is_empty(), "{} of {ran} runs:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
#[should_panic(
    expected = "reads_are_in_order_with_gaps, Default passes; remove the deviation: it reads"
)]
fn a_deviation_that_passes_is_reported() {
    let known = Deviation {
        scenario: "reads_are_in_order_with_gaps",
        way: Way::Default,
        reason: "it reads in another order",
    };
    judge(BTreeMap::new(), &[known], 3);
}

#[test]
#[should_panic(expected = "a_key_lives, InCompany: boom")]
fn a_failure_in_another_way_of_writing_is_reported() {
    let known = Deviation { scenario: "a_key_lives", way: Way::Default, reason: "known" };
    let failed =
        [Way::Default, Way::InCompany].map(|way| (("a_key_lives", way), "boom".to_owned()));
    judge(failed.into(), &[known], 3);
}
