//! Runs all scenarios, in all ways of writing, in a new table.

use std::{any::Any, collections::BTreeMap, panic::AssertUnwindSafe, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType,
        ScalarAttributeType, TableStatus, TransactWriteItem, Update,
    },
};
use futures_util::{FutureExt, StreamExt, stream};
use lambda_idempotency_core::{clock::BoxFuture, effects::Effects, record::Owner, store::Store};
use lambda_idempotency_dynamodb::{DynamoDbEffects, DynamoDbStore, DynamoDbStoreBuilder};
use lambda_idempotency_testkit::conformance::{
    SCENARIOS, Scenario,
    effects::{EFFECTS_SCENARIOS, EffectsKit},
};

use crate::company::InCompany;

/// How many scenarios run at once: they wait for the network most of the time.
const AT_ONCE: usize = 8;

/// The ways in which a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// The default: a single write as a request, several writes as statements.
    Default,
    /// Every write as a single request.
    WithoutPartiql,
    /// Every write as a statement.
    InCompany,
}

/// Runs the suite in a new table, and deletes the table.
pub(crate) async fn conforms(client: &Client) {
    let table = format!("idempotency-test-{}", Owner::random().unwrap());
    let tables = [table.clone(), counts(&table)];
    let mut outcome = Ok(());
    for table in &tables {
        outcome = outcome.and(create(client, table).await);
    }
    if outcome.is_ok() {
        outcome = AssertUnwindSafe(run(client, &table)).catch_unwind().await;
    }
    let mut undeleted = Vec::new();
    for table in &tables {
        let deleted = client.delete_table().table_name(table).send().await;
        undeleted.extend(deleted.err().map(|error| format!("{table}: {error:?}")));
    }
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
    assert!(undeleted.is_empty(), "tables that could not be deleted: {undeleted:?}");
}

/// The table in which effects count.
fn counts(table: &str) -> String {
    format!("{table}-counts")
}

/// Effects that count in a table.
struct Counts<'a> {
    client: &'a Client,
    table: String,
}

impl EffectsKit for Counts<'_> {
    fn adding(&self, names: &[String], refused: Option<usize>) -> Effects {
        let mut effects = DynamoDbEffects::default();
        for (position, name) in names.iter().enumerate() {
            let exists = if refused == Some(position) { "exists" } else { "not_exists" };
            let update = Update::builder()
                .table_name(&self.table)
                .key("id", AttributeValue::S(name.clone()))
                .update_expression("ADD n :one")
                .condition_expression(format!("attribute_{exists}(never)"))
                .expression_attribute_values(":one", AttributeValue::N("1".into()));
            let item = TransactWriteItem::builder().update(update.build().unwrap()).build();
            effects.add(item).unwrap();
        }
        Effects::new(effects)
    }

    fn count<'a>(&'a self, name: &'a str) -> BoxFuture<'a, u64> {
        Box::pin(async move {
            let key = AttributeValue::S(name.to_owned());
            let request = self.client.get_item().table_name(&self.table).key("id", key);
            let item = request.consistent_read(true).send().await.unwrap().item;
            item.map_or(0, |item| item["n"].as_n().unwrap().parse().unwrap())
        })
    }
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

async fn run(client: &Client, table: &str) {
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
    let (way, store) = &ways[0];
    let kit = Counts { client, table: counts(table) };
    for (name, run) in EFFECTS_SCENARIOS {
        let ended = AssertUnwindSafe(run(&**store, &kit)).catch_unwind().await;
        failed.extend(ended.err().map(|panic| ((*name, *way), text(&*panic))));
    }
    std::panic::set_hook(hook);
    println!("{} runs", SCENARIOS.len() * ways.len() + EFFECTS_SCENARIOS.len());
    assert!(failed.is_empty(), "{failed:#?}");
}

async fn failure(scenario: &Scenario, store: &dyn Store) -> Option<String> {
    let panic = AssertUnwindSafe((scenario.run)(store)).catch_unwind().await.err()?;
    Some(text(&*panic))
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
