//! The cost of a batch: its requests, and the units that DynamoDB bills for them. The handler makes no requests,
//! so all of them are the library's.
//!
//! `cargo test -p lambda-idempotency-tests --test e2e costs -- --nocapture` prints the figures of the guide's
//! page about costs. Each of its rows is compared with the measurement.

use std::time::Duration;

use lambda_idempotency::{Call, DynamoDbStore, Failure, Operation, RunContext};
use lambda_idempotency_core::{
    clock::{Clock as _, SystemClock},
    key::Key,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Store as _, Verdict, Write},
};
use lambda_idempotency_local::{DynamoDb, Local, Table, Usage};
use lambda_idempotency_tests::events::{batch_of, order, order_with};
use serde_json::json;

use crate::calls::{TABLE, client, idempotency};
use crate::support::{World, history, idle, quick_queue, returned, scripted_orders};

const PAGE: &str = include_str!("../../../crates/lambda/src/guide/cost.md");

/// Prices in USD for a million units, on demand, in us-east-1. The page names them.
const WRITE_UNITS: f64 = 0.625;
const READ_UNITS: f64 = 0.125;

/// The units billed for each record of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Billed {
    write_units: f64,
    read_units: f64,
}

impl Billed {
    fn of(usage: &Usage, records: u32) -> Self {
        // DynamoDB bills a refused write as one unit. The embedded one reports none for a request in which
        // all writes are refused; here either all are refused or none.
        let written = usage.write_units + usage.refused_conditions as f64;
        let each = |units: f64| units / f64::from(records);
        Self { write_units: each(written), read_units: each(usage.read_units) }
    }

    /// The price for a million records, in USD.
    fn dollars(self) -> f64 {
        self.write_units * WRITE_UNITS + self.read_units * READ_UNITS
    }
}

/// The usage of a new batch, of the same batch again, and of the same batch in another process.
struct Costs {
    records: u32,
    usages: [Usage; 3],
}

impl Costs {
    async fn measured(records: u32) -> Self {
        let world = World::of(idle()).await;
        let event = batch_of((0..records).map(|number| order(&format!("o-{number}"))));
        let fresh = world.invoke(&event).await.unwrap();
        let warm = world.invoke(&event).await.unwrap();
        let dynamodb = world.dynamodb().clone();
        let other = Local::builder(idle()).dynamodb(dynamodb).start().await.unwrap();
        let cold = other.invoke(&event).await.unwrap();
        let invocations = [(&fresh, "executed"), (&warm, "replayed"), (&cold, "replayed")];
        for (invocation, outcome) in invocations {
            assert!(returned(&invocation.result).is_empty());
            let outcomes: Vec<_> =
                invocation.records.iter().map(|line| line.outcome.as_str()).collect();
            assert_eq!(outcomes, vec![outcome; records as usize]);
        }
        let usages = [fresh, warm, cold].map(|invocation| invocation.dynamodb);
        for (what, usage) in ["fresh", "known here", "known elsewhere"].iter().zip(&usages) {
            let billed = Billed::of(usage, records);
            println!(
                "batch of {records:>3}, {what}: {} requests {:?}; per record {} write units, {} read \
                 units; {:.3} USD per million records",
                usage.requests(),
                usage.operations,
                billed.write_units,
                billed.read_units,
                billed.dollars()
            );
        }
        Self { records, usages }
    }

    fn requests(&self) -> [u64; 3] {
        let requests = self.usages.each_ref().map(Usage::requests);
        let [fresh, warm, cold] = requests;
        if self.records == 1 {
            documented_requests("new", self.records, fresh);
        }
        documented_requests("duplicates, known to this process", self.records, warm);
        documented_requests("duplicates, known to the table", self.records, cold);
        requests
    }

    fn billed(&self) -> [Billed; 3] {
        self.usages.each_ref().map(|usage| Billed::of(usage, self.records))
    }
}

/// Asserts that the page has this row.
fn documented(row: &str) {
    assert!(PAGE.lines().any(|line| line == row), "cost.md lacks this row:\n{row}");
}

/// Asserts that the page names at least as many requests for a batch of 1, 10 or 100 records.
fn documented_requests(kind: &str, records: u32, requests: u64) {
    let start = format!("| {kind} | ");
    let row = PAGE.lines().filter_map(|line| line.strip_prefix(&start)).next_back();
    let cells: Vec<_> = row.map(|row| row.split(['|', ' ']).collect()).unwrap_or_default();
    let mut cells = cells.into_iter().filter(|cell| !cell.is_empty());
    let column = [1, 10, 100].iter().position(|batch| *batch == records).unwrap();
    let named: u64 = cells.nth(column).unwrap_or_default().parse().unwrap();
    let place = format!("a batch of {records}, {kind}");
    assert!(requests <= named, "{place}: {requests} requests, and cost.md says {named}");
}

/// Asserts that the page has the row of a kind of record whose handler wrote `effects` units of its own.
pub(crate) fn documented_record(kind: &str, usage: &Usage, effects: f64) {
    let Billed { write_units, read_units } = Billed::of(usage, 1);
    let row = row(kind, Billed { write_units: write_units - effects, read_units });
    println!("{row}");
    documented(&row);
}

/// The row of a kind of record in the table of the page.
fn row(kind: &str, Billed { write_units, read_units }: Billed) -> String {
    let dollars = Billed { write_units, read_units }.dollars();
    format!("| {kind} | {write_units} | {read_units} | {dollars:.3} |")
}

/// The claims of up to 25 records share one request, and the completions others.
#[tokio::test]
async fn new_records_and_duplicates_cost_what_the_page_says() {
    // A completion does not wait for other handlers, so how many share a request depends on the machine. Without sharing,
    // ten records would need twenty requests, and a hundred two hundred.
    for (records, most, duplicate) in [
        (1, [2, 0, 1], "duplicate, known to the table, alone in its batch"),
        (10, [1 + 10, 0, 2], "duplicate, known to the table, in a batch"),
        (100, [4 + 100, 0, 8], "duplicate, known to the table, in a batch"),
    ] {
        let costs = Costs::measured(records).await;
        let requests = costs.requests();
        let is_few = requests.iter().zip(most).all(|(requests, most)| *requests <= most);
        assert!(is_few && (records > 1 || requests == most), "{records}: {requests:?}");
        let [fresh, warm, cold] = costs.billed();
        documented(&row("new", fresh));
        documented(&row("duplicate, known to this process", warm));
        documented(&row(duplicate, cold));
    }
}

/// Records that were received before are read first, so that a duplicate costs no write.
#[tokio::test]
async fn records_that_are_received_again_cost_a_read_and_save_a_write() {
    for records in [1, 10] {
        let world = World::of(idle()).await;
        let mut event = batch_of((0..records).map(|number| order(&format!("o-{number}"))));
        for message in event["Records"].as_array_mut().unwrap() {
            message["attributes"]["ApproximateReceiveCount"] = "2".into();
        }
        let fresh = world.invoke(&event).await.unwrap();
        let dynamodb = world.dynamodb().clone();
        let other = Local::builder(idle()).dynamodb(dynamodb).start().await.unwrap();
        let again = other.invoke(&event).await.unwrap();
        for (invocation, outcome) in [(&fresh, "executed"), (&again, "replayed")] {
            assert!(invocation.records.iter().all(|line| line.outcome.as_str() == outcome));
        }
        assert_eq!(again.dynamodb.requests(), 1, "one read for all");
        let [fresh, again] =
            [fresh, again].map(|invocation| Billed::of(&invocation.dynamodb, records));
        println!("batch of {records:>3}, received again: new {fresh:?}, duplicates {again:?}");
        documented(&row("new, received again", fresh));
        documented(&row("duplicate, received again", again));
    }
}

/// A program that polls a queue itself says how often it received a message.
#[tokio::test]
async fn calls_of_run_that_say_how_often_they_were_received_cost_the_same() {
    let dynamodb = DynamoDb::start().await.unwrap();
    dynamodb.create_table(&Table::new(TABLE, "id").ttl("expiration")).unwrap();
    let (operation, payload) =
        (Operation::new("place-order").key("orderId"), json!({ "orderId": "o-1" }));
    for (kind, is_duplicate) in [("new", false), ("duplicate", true)] {
        // Another process each time, which knows nothing of the other one.
        let proxy = dynamodb.proxy().await.unwrap();
        let context = RunContext::without_deadline().with_receives(2);
        let handler = async |_: Call| Ok::<_, Failure>(());
        let done = idempotency(&proxy).run(&operation, &payload, context, handler).await.unwrap();
        assert_eq!(done.replayed, is_duplicate);
        documented_record(&format!("{kind}, a call of `run` with receives"), &proxy.usage(), 0.0);
    }
}

/// A failure is written over the claim, and read before the record is claimed again.
#[tokio::test]
async fn a_failure_costs_a_write_and_its_retry_a_read_more_than_a_new_record() {
    let world = World::with(scripted_orders(), |local| local.sqs(quick_queue())).await;
    let report = world.send(&batch_of([order_with("o-1", json!({ "failTimes": 1 }))])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "failed"), ("m-o-1", 2, "executed")]);
    let usages: Vec<_> = report.invocations.iter().map(|one| &one.invocation.dynamodb).collect();
    documented_record("new, whose handler fails", usages[0], 0.0);
    documented_record("retried after that, received again", usages[1], 1.0);
}

/// A duplicate is refused by a write, which DynamoDB bills by the size of the item that it finds.
#[tokio::test]
async fn duplicates_of_large_results_are_billed_by_the_item() {
    for kilobytes in [1, 10, 100, 300] {
        let keeps = || idle().env("KEEPS_RESULTS", "1");
        let large = order_with("o-large", json!({ "bytes": kilobytes * 1024 }));
        let world = World::of(keeps()).await;
        let fresh = world.invoke(&batch_of([large.clone()])).await.unwrap().dynamodb;
        let completion = fresh.write_units - 1.0;
        let dynamodb = world.dynamodb().clone();
        let other = Local::builder(keeps()).dynamodb(dynamodb).start().await.unwrap();
        // Another record, so that DynamoDB reports units: a claim and a completion.
        let both = other.invoke(&batch_of([large, order("o-small")])).await.unwrap();
        let told: Vec<_> = both.records.iter().map(|line| line.outcome.as_str()).collect();
        assert_eq!(told, ["replayed", "executed"]);
        let write_units = both.dynamodb.write_units - 2.0;
        let read_units = both.dynamodb.read_units;
        let alone = Billed { write_units, read_units: 0.0 }.dollars();
        let in_a_batch = Billed { write_units, read_units }.dollars();
        documented(&format!(
            "| {kilobytes} KB | {completion} | {write_units} | {read_units} | {alone:.2} | {in_a_batch:.2} |"
        ));
    }
}

/// What is left in a record is in the index as long as it is left. Others are never in it.
#[tokio::test]
async fn an_index_costs_a_write_unit_for_what_comes_and_one_for_what_goes() {
    let dynamodb = DynamoDb::start().await.unwrap();
    let plain = Table::new(TABLE, "id");
    dynamodb.create_table(&plain).unwrap();
    dynamodb.create_table(&Table::new("indexed", "id").index("unfinished", "unfinished")).unwrap();
    let until = SystemClock.now().plus(Duration::from_secs(60));
    let record = |status, payload: bool, outbox: bool| {
        let mut record = IdempotencyRecord::new(status, until);
        record.owner = Some(Owner::from_bits(1));
        record.payload = payload.then(|| "{}".into());
        record.outbox = outbox.then(|| "[]".into());
        record
    };
    for (kind, payload, outbox) in [
        ("neither", false, false),
        ("its payload is kept", true, false),
        ("it has messages", false, true),
        ("both", true, true),
    ] {
        let mut units = Vec::new();
        for table in [TABLE, "indexed"] {
            let proxy = dynamodb.proxy().await.unwrap();
            let store = DynamoDbStore::new(client(&proxy), table);
            let send = async |guard, record| {
                let write = Write::new(Key::from_text(kind), guard, Some(record));
                let verdict = store.write(&[write], until).await;
                assert!(matches!(verdict[..], [Verdict::Written]), "{verdict:?}");
            };
            send(Guard::Absent, record(Status::InProgress, payload, false)).await;
            let owned = Guard::OwnedBy(Owner::from_bits(1));
            let done = record(Status::Completed, false, outbox);
            let seen = Guard::Unchanged(RecordVersion::of(&done));
            send(owned, done).await;
            if outbox {
                send(seen, record(Status::Completed, false, false)).await;
            }
            units.push(proxy.usage().write_units);
        }
        let more = units[1] - units[0];
        let dollars = more * WRITE_UNITS;
        documented(&format!("| {kind} | {} | {more} | {dollars:.3} |", units[0]));
    }
}

#[test]
fn the_page_names_its_prices() {
    for price in [WRITE_UNITS, READ_UNITS] {
        assert!(PAGE.contains(&format!("{price} USD")), "cost.md does not name the price {price}");
    }
}
