//! The resources of `docs/prove/template.yaml`, in MiniStack.

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ProvisionedThroughput,
    ScalarAttributeType, Tag, TimeToLiveSpecification,
};
use aws_sdk_sqs::types::QueueAttributeName as Attribute;
use serde_json::json;

pub(crate) const REGION: &str = "us-east-1";

/// Its clients.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) dynamodb_url: String,
    pub(crate) dynamodb: aws_sdk_dynamodb::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) logs: aws_sdk_cloudwatchlogs::Client,
}

impl Services {
    pub(crate) async fn new(url: &str) -> Self {
        let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
            .endpoint_url(url)
            .region(Region::from_static(REGION))
            .credentials_provider(Credentials::new("local", "local", None, None, "test"))
            .load();
        let config = &config.await;
        Self {
            dynamodb_url: url.to_owned(),
            dynamodb: aws_sdk_dynamodb::Client::new(config),
            sqs: aws_sdk_sqs::Client::new(config),
            logs: aws_sdk_cloudwatchlogs::Client::new(config),
        }
    }

    /// Another DynamoDB.
    pub(crate) fn use_dynamodb(&mut self, url: &str) {
        let config = self.dynamodb.config().to_builder().endpoint_url(url).build();
        self.dynamodb = aws_sdk_dynamodb::Client::from_conf(config);
        self.dynamodb_url = url.to_owned();
    }

    /// Waits until a queue has a message, visible or not.
    pub(crate) async fn wait_for_a_message(&self, queue: &str) {
        let names = [
            Attribute::ApproximateNumberOfMessages,
            Attribute::ApproximateNumberOfMessagesNotVisible,
        ];
        loop {
            let asked = self.sqs.get_queue_attributes().queue_url(queue);
            let asked = asked.set_attribute_names(Some(names.to_vec())).send().await.unwrap();
            if asked.attributes.unwrap().values().any(|count| count != "0") {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A stack.
#[derive(Clone)]
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) table: String,
    pub(crate) ledger: String,
    pub(crate) queue: String,
    pub(crate) fifo: String,
    pub(crate) dead: String,
    pub(crate) logs: String,
}

const MARK: &str = "lambda-idempotency-prove";

/// How often a queue delivers a message, and how long it is invisible: as in the template, with fewer seconds.
const RECEIVES: u32 = 15;
const VISIBILITY: &str = "4";

impl Stack {
    /// Makes its resources. `mark` is the value of the tag by which the command recognises the ledger.
    pub(crate) async fn create(services: &Services, name: &str, mark: &str) -> Self {
        let dead = queue(services, name, "dead", None).await;
        let fifo_dead = queue(services, name, "dead.fifo", None).await;
        let queue_url = queue(services, name, "queue", Some(&dead)).await;
        let fifo = queue(services, name, "queue.fifo", Some(&fifo_dead)).await;

        let logs = format!("{name}-logs");
        let create = services.logs.create_log_group().log_group_name(&logs);
        create.tags(MARK, name).send().await.unwrap();
        let table = format!("{name}-table");
        records_table(services, &table, name).await;
        let ledger = format!("{name}-ledger");
        let tags = [
            (MARK, mark),
            ("prove-table", &table),
            ("prove-queue", &queue_url),
            ("prove-fifo-queue", &fifo),
            ("prove-dead-letters", &dead),
            ("prove-fifo-dead-letters", &fifo_dead),
            ("prove-logs", &logs),
        ];
        ledger_table(services, &ledger, &tags).await;
        let (name, queue) = (name.to_owned(), queue_url);
        Self { name, table, ledger, queue, fifo, dead, logs }
    }
}

async fn queue(services: &Services, stack: &str, name: &str, dead_letters: Option<&str>) -> String {
    let mut create = services.sqs.create_queue().queue_name(format!("{stack}-{name}"));
    create = create.tags(MARK, stack);
    create = create.attributes(Attribute::VisibilityTimeout, VISIBILITY);
    if name.ends_with(".fifo") {
        create = create.attributes(Attribute::FifoQueue, "true");
    }
    if let Some(dead_letters) = dead_letters {
        let target = arn(services, dead_letters).await;
        let policy = json!({ "deadLetterTargetArn": target, "maxReceiveCount": RECEIVES });
        create = create.attributes(Attribute::RedrivePolicy, policy.to_string());
    }
    create.send().await.unwrap().queue_url.unwrap()
}

pub(crate) async fn arn(services: &Services, queue: &str) -> String {
    let name = Attribute::QueueArn;
    let asked = services.sqs.get_queue_attributes().queue_url(queue).attribute_names(name.clone());
    asked.send().await.unwrap().attributes.unwrap()[&name].clone()
}

fn key(name: &str, kind: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build().unwrap()
}

fn text(name: &str) -> AttributeDefinition {
    let definition = AttributeDefinition::builder().attribute_name(name);
    definition.attribute_type(ScalarAttributeType::S).build().unwrap()
}

async fn records_table(services: &Services, name: &str, stack: &str) {
    let units = ProvisionedThroughput::builder().read_capacity_units(10).write_capacity_units(10);
    let create = services.dynamodb.create_table().table_name(name).tags(tag(MARK, stack));
    let create = create.billing_mode(BillingMode::Provisioned);
    let create = create.provisioned_throughput(units.build().unwrap());
    let create = create.attribute_definitions(text("id")).key_schema(key("id", KeyType::Hash));
    create.send().await.unwrap();
    let ttl = TimeToLiveSpecification::builder().attribute_name("expiration").enabled(true);
    let update = services.dynamodb.update_time_to_live().table_name(name);
    update.time_to_live_specification(ttl.build().unwrap()).send().await.unwrap();
}

fn tag(name: &str, value: &str) -> Tag {
    Tag::builder().key(name).value(value).build().unwrap()
}

async fn ledger_table(services: &Services, name: &str, tags: &[(&str, &str)]) {
    let tags = tags.iter().map(|(name, value)| tag(name, value));
    let create = services.dynamodb.create_table().table_name(name);
    let create = create.billing_mode(BillingMode::PayPerRequest).set_tags(Some(tags.collect()));
    let create = create.attribute_definitions(text("run")).attribute_definitions(text("line"));
    let create =
        create.key_schema(key("run", KeyType::Hash)).key_schema(key("line", KeyType::Range));
    create.send().await.unwrap();
}
