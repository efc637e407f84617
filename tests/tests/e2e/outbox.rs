//! Messages that are stored with the completion of their order, and sent to a table that stands for a queue: the process
//! is killed before it has sent them, and the answers of the queue are lost.

use std::collections::{BTreeMap, BTreeSet};

use lambda_idempotency_local::{Apply, DeliveryReport, Fault, Gate, Table};
use lambda_idempotency_tests::events::{batch_of, order_with};
use serde_json::{Value, json};

use crate::support::{World, history, returned, scripted_orders};

const PARCELS: &str = "parcels";
/// The messages of the order, in the order in which it publishes them.
const MESSAGES: [&str; 3] = ["o-1 1", "o-1 2", "o-1 3"];

fn event() -> Value {
    batch_of([order_with("o-1", json!({ "messages": 3 }))])
}

async fn world() -> World {
    let function =
        scripted_orders().env("SCRIPTED_TRANSACTION", "1").env("SCRIPTED_PARCELS_TABLE", PARCELS);
    let world = World::outlasting_leases(function).await;
    world.dynamodb().create_table(&Table::new(PARCELS, "id")).unwrap();
    world
}

/// A request that sends a message.
fn send(fault: Fault) -> Fault {
    fault.on("UpdateItem").table(PARCELS)
}

/// How often each message has arrived. Two ids of one message would be two entries.
fn arrivals(world: &World) -> Vec<(String, u64)> {
    let items = world.dynamodb().items(PARCELS).unwrap();
    let arrival = |item: &Value| {
        let times = item["arrivals"]["N"].as_str().unwrap().parse().unwrap();
        (item["parcel"]["S"].as_str().unwrap().to_owned(), times)
    };
    let mut arrivals: Vec<_> = items.iter().map(arrival).collect();
    arrivals.sort();
    arrivals
}

/// The order is placed once, each of its messages has one id and has arrived so often, and in this order for the first
/// time. Only the last delivery is acknowledged, and every message had arrived by then.
fn assert_sent(world: &World, report: &DeliveryReport, times: [u64; 3]) {
    world.assert_placed_once(["o-1"]);
    let expected = MESSAGES.into_iter().zip(times).map(|(body, times)| (body.to_owned(), times));
    assert_eq!(arrivals(world), expected.collect::<Vec<_>>());
    let items = world.dynamodb().items(PARCELS).unwrap();
    let text = |item: &Value, name: &str| item[name]["S"].as_str().unwrap().to_owned();
    let bodies: BTreeMap<_, _> =
        items.iter().map(|item| (text(item, "id"), text(item, "parcel"))).collect();
    let mut seen = BTreeSet::new();
    let requests = report.invocations.iter().flat_map(|it| &it.invocation.requests);
    let sent = requests.flat_map(|request| &request.items).filter(|item| item.table == PARCELS);
    let firsts: Vec<_> = sent
        .filter(|item| seen.insert(item.key.clone()))
        .map(|item| bodies[&item.key].as_str())
        .collect();
    assert_eq!(firsts, MESSAGES, "in order");
    let [before @ .., last] = &report.invocations[..] else { panic!("{report:?}") };
    assert!(returned(&last.invocation.result).is_empty());
    let acknowledges = before.iter().any(|invocation| {
        let result = &invocation.invocation.result;
        result.is_response() && returned(result).is_empty()
    });
    assert!(!acknowledges, "a delivery was acknowledged before its messages were sent");
    assert!(!world.claims().iter().any(|claim| claim.get("outbox").is_some()));
}

/// Between the commit and the first message, between two messages, and after a message whose answer the process did not
/// get: that one, and those before it, arrive again with their ids.
#[tokio::test]
async fn messages_of_a_process_that_is_killed_after_its_commit_are_sent_by_the_next_delivery() {
    let held = |apply, skip| move |gate: &Gate| send(Fault::hold(apply, gate)).skip(skip);
    for (apply, skip, times) in
        [(Apply::Before, 0, [1, 1, 1]), (Apply::Before, 1, [2, 1, 1]), (Apply::After, 1, [2, 2, 1])]
    {
        let world = world().await;
        let report = world.kill_with(&event(), held(apply, skip)).await;
        assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, "replayed")]);
        assert_sent(&world, &report, times);
    }
}

/// The queue takes the second message, and none of the answers to the three tries of the client arrives: the delivery
/// is returned, and the next one sends what is not known to be sent.
#[tokio::test]
async fn a_message_whose_answer_is_lost_is_sent_again_before_its_delivery_is_acknowledged() {
    let world = world().await;
    world.dynamodb().faults().add(send(Fault::hang_up(Apply::After)).skip(1).times(3));
    let report = world.send(&event()).await;
    assert_eq!(history(&report), [("m-o-1", 1, "unsent"), ("m-o-1", 2, "replayed")]);
    assert_sent(&world, &report, [2, 4, 1]);
}
