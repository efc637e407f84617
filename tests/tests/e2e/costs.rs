//! What a record costs: its requests, and the units that DynamoDB bills for them. The guide's page about costs has these
//! figures, less the units of the handlers' own effects.

use lambda_idempotency_local::{FunctionConfig, Local, LocalBuilder, Table, Usage};
use lambda_idempotency_tests::events::{batch_of, order, order_with};
use serde_json::Value;

use crate::support::{World, history, idle, outcomes, quick_queue, scripted_orders};

/// The write units and the read units of each of these records.
pub(crate) fn billed(usage: &Usage, records: u32) -> [f64; 2] {
    // DynamoDB bills a refused write as one unit. The embedded one reports none for a request in which
    // all writes are refused; here either all are refused or none.
    let written = usage.write_units + usage.refused_conditions as f64;
    [written, usage.read_units].map(|units| units / f64::from(records))
}

fn event(records: u32, receives: &str) -> Value {
    let mut event = batch_of((0..records).map(|number| order(&format!("o-{number}"))));
    for message in event["Records"].as_array_mut().unwrap() {
        message["attributes"]["ApproximateReceiveCount"] = receives.into();
    }
    event
}

/// A new batch, the same batch again, and the same batch in another process: the requests of each, and its units.
async fn measured(records: u32, receives: &str) -> [(u64, [f64; 2]); 3] {
    let world = World::of(idle()).await;
    let event = event(records, receives);
    let fresh = world.invoke(&event).await.unwrap();
    let warm = world.invoke(&event).await.unwrap();
    let dynamodb = world.dynamodb().clone();
    let other = Local::builder(idle()).dynamodb(dynamodb).start().await.unwrap();
    let cold = other.invoke(&event).await.unwrap();
    for (invocation, outcome) in [(&fresh, "executed"), (&warm, "replayed"), (&cold, "replayed")] {
        assert!(invocation.records.iter().all(|line| line.outcome.as_str() == outcome));
    }
    let usages = [fresh, warm, cold].map(|invocation| invocation.dynamodb);
    usages.map(|usage| (usage.requests(), billed(&usage, records)))
}

/// The claims of up to 25 records share one request, and the completions others. Records that were received before are
/// read first, so that a duplicate costs no write.
#[tokio::test]
async fn new_records_and_duplicates_cost_what_the_guide_says() {
    // A completion does not wait for other handlers, so how many share a request depends on the machine. Without sharing,
    // ten records would need twenty requests, and a hundred two hundred.
    for (records, receives, most, new, duplicate) in [
        (1, "1", [2, 0, 1], [2.0, 0.0], [1.0, 0.0]),
        (10, "1", [1 + 10, 0, 2], [2.0, 0.0], [1.0, 1.0]),
        (100, "1", [4 + 100, 0, 5], [2.0, 0.0], [1.0, 1.0]),
        (1, "2", [3, 0, 1], [2.0, 1.0], [0.0, 1.0]),
        (10, "2", [2 + 10, 0, 1], [2.0, 1.0], [0.0, 1.0]),
    ] {
        let costs = measured(records, receives).await;
        let requests = costs.map(|(requests, _)| requests);
        let is_few = requests.iter().zip(most).all(|(requests, most)| *requests <= most);
        assert!(is_few && (records > 1 || requests == most), "{records}: {requests:?}");
        assert_eq!(costs.map(|(_, units)| units), [new, [0.0, 0.0], duplicate], "{records}");
    }
}

/// A failure is written over the claim, and read before the record is claimed again.
#[tokio::test]
async fn a_failure_costs_a_write_and_its_retry_a_read_more_than_a_new_record() {
    let world = World::with(scripted_orders(), |local| local.sqs(quick_queue())).await;
    let report =
        world.send(&batch_of([order_with("o-1", serde_json::json!({ "failTimes": 1 }))])).await;
    assert_eq!(history(&report), [("m-o-1", 1, "failed"), ("m-o-1", 2, "executed")]);
    let usages: Vec<_> = report.invocations.iter().map(|one| &one.invocation.dynamodb).collect();
    assert_eq!(billed(usages[0], 1), [2.0, 0.0]);
    assert_eq!(billed(usages[1], 1), [2.0 + 1.0, 1.0], "with the order");
}

const PARCELS: &str = "parcels";

/// The variables of a function that places an order, the write units with those of the order and its mail and message,
/// and the requests.
const MODES: [(&[&str], f64, u64); 7] = [
    (&[], 3.0, 3),
    (&["SCRIPTED_STEPS"], 6.0, 6),
    (&[PARCELS], 5.0, 5),
    (&["SCRIPTED_TRANSACTION"], 5.0, 2),
    (&["SCRIPTED_TRANSACTION", PARCELS], 7.0, 4),
    (&["SCRIPTED_TRANSACTION", "SCRIPTED_OPTIMISTIC"], 4.0, 1),
    (&["SCRIPTED_MUTEX"], 3.0, 3),
];

#[tokio::test]
async fn a_record_costs_what_the_guide_says_of_each_mode() {
    for (variables, write_units, requests) in MODES {
        let set = |function: FunctionConfig, name: &&str| match *name {
            PARCELS => function.env("SCRIPTED_PARCELS_TABLE", PARCELS),
            name => function.env(name, "1"),
        };
        let function = variables.iter().fold(scripted_orders(), set);
        let tables = |local: LocalBuilder| local.table(Table::new(PARCELS, "id"));
        let world = World::with(function, tables).await;
        let before = world.dynamodb().usage();
        assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
        let usage = world.dynamodb().usage().since(&before);
        let found = (billed(&usage, 1), usage.requests());
        assert_eq!(found, ([write_units, 0.0], requests), "{variables:?}: {usage:?}");
        assert!(!world.claims().iter().any(|claim| claim.get("steps").is_some()), "{variables:?}");
    }
}
