//! Two functions with a queue between them, and faults wherever messages are sent: each order is placed once, and each of
//! its tasks is done once.
//!
//! ```console
//! $ cargo test --manifest-path docs/examples/Cargo.toml --test chain
//! ```
//!
//! `orders` gets orders from a queue that delivers them again, and runs in a local Lambda. It commits each order with its
//! messages, and sends these to a queue of MiniStack through a wire that kills the process before or after sending, sends
//! twice, or loses the answer. `parcels` gets each message of that queue at least twice, and dies after one of its
//! commits. Some orders die once and are not delivered again: `relay` sends their messages. Both functions write what they
//! did into tables, which are the ledger: it is printed and compared with what should have happened.

#[path = "../support/ministack.rs"]
mod ministack;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use aws_sdk_sqs::{
    Client,
    types::{Message, MessageSystemAttributeName, QueueAttributeName},
};
use lambda_idempotency_local::{
    Apply, DynamoDb, Fault as Hold, FunctionConfig, Gate, Local, SqsConfig, Table,
};
use ministack::MiniStack;
use serde_json::{Map, Value, json};
use wire::{Fault, Wire};

/// The orders that their queue delivers until they are placed.
const ORDERS: usize = 60;
/// The orders that their queue delivers once.
const LEFT: usize = 3;
const TASKS: [&str; 2] = ["pack", "ship"];
/// How long `parcels` may take for all messages.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::main]
async fn main() {
    let ministack = ministack::start();
    for is_fifo in [false, true] {
        chain(&ministack, is_fifo).await;
    }
}

async fn chain(ministack: &MiniStack, is_fifo: bool) {
    println!("\n{} queue", if is_fifo { "FIFO" } else { "Standard" });
    let sqs = Client::new(&ministack::config(ministack).await);
    let (queue, arn) = create(&sqs, is_fifo).await;
    let dynamodb = DynamoDb::start().await.expect("a database");
    for table in ["idempotency", "orders", "parcels"] {
        dynamodb.create_table(&Table::new(table, "id")).expect("a table");
    }
    let locals = Arc::new(Mutex::new(Vec::<Arc<Local>>::new()));
    let alive = Arc::clone(&locals);
    let kill = move || {
        for local in alive.lock().expect("locals").iter() {
            local.kill_in_flight();
        }
    };
    let wire = Wire::start(ministack.url(), kill).await;
    let start = async |binary: &str, receives: u32| {
        let function = FunctionConfig::new(binary)
            .timeout(Duration::from_secs(2))
            .env("IDEMPOTENCY_TABLE", "idempotency")
            .env("ORDERS_TABLE", "orders")
            .env("PARCELS_TABLE", "parcels")
            .env("PARCELS_QUEUE_URL", &queue)
            .env("RELAY_MIN_AGE_SECONDS", "0")
            .env("AWS_ENDPOINT_URL_SQS", wire.url())
            .env("RUST_LOG", "off");
        let sqs = SqsConfig { max_receive_count: receives, ..SqsConfig::default() };
        let local = Local::builder(function).dynamodb(dynamodb.clone()).sqs(sqs).start().await;
        let local = Arc::new(local.expect("a function"));
        locals.lock().expect("locals").push(Arc::clone(&local));
        local
    };

    let orders = start(env!("CARGO_BIN_EXE_orders"), 100).await;
    let report = orders.deliver(&event(0..ORDERS)).await.expect("deliveries");
    assert!(report.dead_letters.is_empty(), "an order was not placed");
    println!("  orders:  {ORDERS} orders in {} invocations; {wire}", report.invocations.len());

    let once = start(env!("CARGO_BIN_EXE_orders"), 1).await;
    wire.inject(&[Fault::DiesBefore]);
    for number in ORDERS..ORDERS + LEFT {
        let report = once.deliver(&event(number..=number)).await.expect("a delivery");
        assert_eq!(
            report.dead_letters.len(),
            1,
            "the process died, and the order is not delivered again"
        );
    }
    wire.inject(&[Fault::None]);
    let before = unsent(&dynamodb);
    let relay = start(env!("CARGO_BIN_EXE_relay"), 1).await;
    let answer = relay.invoke(&json!({})).await.expect("an invocation");
    let answer = answer.response().expect("an answer").clone();
    println!("  relay:   {LEFT} orders that are not delivered again; its answer is {answer}");
    assert_eq!((before, unsent(&dynamodb)), (LEFT, 0), "records with messages before and after it");

    let parcels = start(env!("CARGO_BIN_EXE_parcels"), 100).await;
    // It dies after its first commit, and before it learns that.
    let gate = Gate::new();
    dynamodb.faults().add(Hold::hold(Apply::After, &gate).table("parcels").times(1));
    let dies = async {
        gate.reached().await;
        parcels.kill_in_flight()
    };
    let (received, killed) = tokio::join!(consume(&sqs, &queue, &arn, &parcels), dies);
    assert_eq!(killed, 1, "it died");
    audit(&dynamodb, &received, is_fifo);
}

/// The event of these orders.
fn event(numbers: impl Iterator<Item = usize>) -> String {
    let record = |number| {
        json!({
            "messageId": format!("m-{number}"), "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:orders",
            "body": json!({ "id": format!("o-{number}") }).to_string(),
        })
    };
    json!({ "Records": numbers.map(record).collect::<Vec<_>>() }).to_string()
}

/// How many records have messages that are not known to be sent.
fn unsent(dynamodb: &DynamoDb) -> usize {
    let items = dynamodb.items("idempotency").expect("items");
    items.iter().filter(|item| item.get("outbox").is_some()).count()
}

/// Its URL and its ARN.
async fn create(sqs: &Client, is_fifo: bool) -> (String, String) {
    let create = sqs.create_queue().attributes(QueueAttributeName::VisibilityTimeout, "2");
    let create = if is_fifo {
        create.queue_name("parcels.fifo").attributes(QueueAttributeName::FifoQueue, "true")
    } else {
        create.queue_name("parcels")
    };
    let queue = create.send().await.expect("a queue").queue_url.expect("its URL");
    let arn = attribute(sqs, &queue, QueueAttributeName::QueueArn).await;
    (queue, arn)
}

async fn attribute(sqs: &Client, queue: &str, name: QueueAttributeName) -> String {
    let asked = sqs.get_queue_attributes().queue_url(queue).attribute_names(name.clone());
    let attributes = asked.send().await.expect("attributes").attributes.expect("attributes");
    attributes[&name].clone()
}

/// Hands all messages of the queue to the function, each twice at least. Returns their ids, those that SQS gave them
/// and those of the outbox.
async fn consume(
    sqs: &Client,
    queue: &str,
    arn: &str,
    function: &Local,
) -> BTreeSet<(String, String)> {
    let (mut received, start) = (BTreeSet::new(), Instant::now());
    loop {
        assert!(start.elapsed() < PATIENCE, "the queue is not empty after {PATIENCE:?}");
        let messages = sqs
            .receive_message()
            .queue_url(queue)
            .max_number_of_messages(10)
            .message_attribute_names("All")
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .send();
        let messages = messages.await.expect("messages").messages.unwrap_or_default();
        if messages.is_empty() {
            let waiting =
                attribute(sqs, queue, QueueAttributeName::ApproximateNumberOfMessages).await;
            let hidden = QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
            if waiting == "0" && attribute(sqs, queue, hidden).await == "0" {
                return received;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        }
        let records: Vec<_> = messages.iter().map(|message| record(message, arn)).collect();
        for record in &records {
            let id = &record["messageAttributes"]["idempotency-key"]["stringValue"];
            received.insert((text(&record["messageId"]), text(id)));
        }
        let answer = function.invoke(&json!({ "Records": records })).await.expect("an invocation");
        let Some(answer) = answer.response() else { continue };
        let failed = answer["batchItemFailures"].as_array().cloned().unwrap_or_default();
        let failed: Vec<_> = failed.iter().map(|one| text(&one["itemIdentifier"])).collect();
        for (message, record) in messages.iter().zip(&records) {
            let is_second = record["attributes"]["ApproximateReceiveCount"] != "1";
            if is_second && !failed.contains(&text(&record["messageId"])) {
                let handle = message.receipt_handle.clone().expect("a handle");
                let delete = sqs.delete_message().queue_url(queue).receipt_handle(handle);
                delete.send().await.expect("a deletion");
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// A message as Lambda hands it to a function.
fn record(message: &Message, arn: &str) -> Value {
    let attributes = message.attributes.iter().flatten();
    let attributes: Map<_, _> =
        attributes.map(|(name, value)| (name.as_str().to_owned(), json!(value))).collect();
    let of_message = message.message_attributes.iter().flatten().map(|(name, value)| {
        let value = json!({ "stringValue": value.string_value, "dataType": value.data_type });
        (name.clone(), value)
    });
    json!({
        "messageId": message.message_id, "receiptHandle": message.receipt_handle,
        "body": message.body, "md5OfBody": message.md5_of_body, "eventSource": "aws:sqs",
        "eventSourceARN": arn, "awsRegion": "us-east-1", "attributes": attributes,
        "messageAttributes": of_message.collect::<Map<_, _>>(),
    })
}

/// Compares the ledger with what should have happened.
fn audit(dynamodb: &DynamoDb, received: &BTreeSet<(String, String)>, is_fifo: bool) {
    let items = |table| {
        let items = dynamodb.items(table).expect("items");
        let by_id = items.into_iter().map(|item| (text(&item["id"]["S"]), item));
        by_id.collect::<BTreeMap<_, _>>()
    };
    let (orders, parcels) = (items("orders"), items("parcels"));
    let ids: BTreeSet<_> = received.iter().map(|(_, id)| id).collect();
    let copies = received.len() - ids.len();
    println!(
        "  parcels: {} messages, {copies} of them copies; each was delivered at least twice",
        received.len()
    );
    let mut tasks_done = 0;
    for order in (0..ORDERS + LEFT).map(|number| format!("o-{number}")) {
        assert_eq!(orders[&order]["placed"]["N"], "1", "{order}");
        let tasks = parcels[&order]["tasks"]["L"].as_array().expect("tasks");
        let mut tasks: Vec<_> = tasks.iter().map(|task| text(&task["S"])).collect();
        tasks_done += tasks.len();
        if !is_fifo {
            tasks.sort();
        }
        assert_eq!(tasks, TASKS, "{order}");
    }
    let expected = ORDERS + LEFT;
    assert_eq!((orders.len(), parcels.len(), ids.len()), (expected, expected, 2 * expected));
    assert!(!is_fifo || copies == 0, "the deduplication ids keep copies out of a FIFO queue");
    let order = if is_fifo { ", in their order" } else { "" };
    println!("  ledger:  {expected} orders placed once; {tasks_done} tasks done once{order}");
}
