//! A process that is killed while it processes a record, by `SIGKILL`, as when a sandbox runs out of
//! memory or its host fails.
//!
//! The record returns to the queue at once. Its key stays claimed until the lease of the dead process
//! ends, and the next attempt gets the number of lost attempts.

use futures_util::{StreamExt as _, stream};
use lambda_idempotency_local::{Apply, Fault, FunctionConfig, Gate, Table};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch_of, order_with},
};
use serde_json::json;

use crate::{
    costs,
    support::{World, history, orders, scripted_orders},
};

const PARCELS: &str = "parcels";

/// The commit of an order with its completion and its message, and the request of the sender.
const COMMIT: &str = "TransactWriteItems";
const SEND: &str = "UpdateItem";

/// A function, and where its process dies: at a request on this table or of this kind, after so many others; or where its
/// handler returns. Then the outcome of the next delivery, how often the order was placed, and its mail if there are steps,
/// and how often its message arrived.
type Death = (
    FunctionConfig,
    Option<(Apply, &'static str, u64)>,
    &'static str,
    &'static [(&'static str, u64)],
    u64,
);

fn deaths() -> Vec<Death> {
    use Apply::{After, Before};
    const ONCE: &[(&str, u64)] = &[("o-1", 1)];
    const TWICE: &[(&str, u64)] = &[("o-1", 2)];
    const BOTH: &[(&str, u64)] = &[("mail o-1", 1), ("o-1", 1)];
    let steps = || scripted_orders().env("SCRIPTED_STEPS", "1");
    let mutex = || scripted_orders().env("SCRIPTED_MUTEX", "1");
    let transaction = || scripted_orders().env("SCRIPTED_TRANSACTION", "1");
    let optimistic = || transaction().env("SCRIPTED_OPTIMISTIC", "1");
    let outbox = || transaction().env("SCRIPTED_PARCELS_TABLE", PARCELS);
    vec![
        // After the claim, and before the effect.
        (orders(), Some((After, CLAIMS, 0)), "executed", ONCE, 0),
        (orders(), Some((Before, ORDERS, 0)), "executed", ONCE, 0),
        // The limit of the library. The effect is in one table and its completion in another. If a process dies
        // between the two, it is not known whether the effect happened. The handler is called again, so that no
        // record is lost, and gets `lost_attempts`, so that it can check for the effect first.
        (orders(), Some((After, ORDERS, 0)), "executed", TWICE, 0),
        // After the completion, a death has no effect.
        (orders(), Some((After, CLAIMS, 1)), "replayed", ONCE, 0),
        // Between two steps, once the first is recorded, and after both.
        (steps(), Some((Before, ORDERS, 1)), "executed", BOTH, 0),
        (steps(), Some((After, CLAIMS, 1)), "executed", BOTH, 0),
        (steps(), None, "executed", BOTH, 0),
        // The limit: nobody knows that the step was done. Here the step's key would have told the other system.
        (steps(), Some((Before, CLAIMS, 1)), "executed", &[("mail o-1", 1), ("o-1", 2)], 0),
        // Effects in the transaction that completes the key: before it is sent, before it arrives, and before its answer.
        (transaction(), None, "executed", ONCE, 0),
        (transaction(), Some((Before, COMMIT, 0)), "executed", ONCE, 0),
        (transaction(), Some((After, COMMIT, 0)), "replayed", ONCE, 0),
        (optimistic(), None, "executed", ONCE, 0),
        (optimistic(), Some((Before, COMMIT, 0)), "executed", ONCE, 0),
        (optimistic(), Some((After, COMMIT, 0)), "replayed", ONCE, 0),
        // A message of a commit is sent by the next delivery; one that has arrived is sent again, with the same id.
        (outbox(), None, "executed", ONCE, 1),
        (outbox(), Some((After, COMMIT, 0)), "replayed", ONCE, 1),
        (outbox(), Some((Before, SEND, 0)), "replayed", ONCE, 1),
        (outbox(), Some((After, SEND, 0)), "replayed", ONCE, 2),
        // Before it has freed its key: the next attempt takes it over when the lease has ended.
        (mutex(), Some((Before, CLAIMS, 1)), "executed", TWICE, 0),
    ]
}

async fn die((function, at, then, placed, arrived): Death) {
    let what = format!("{:?}, {at:?}", function);
    let world = World::outlasting_leases(function).await;
    world.dynamodb().create_table(&Table::new(PARCELS, "id")).unwrap();
    let hold = |gate: &Gate, (apply, place, skip): (Apply, &'static str, u64)| {
        let held = Fault::hold(apply, gate).skip(skip);
        if [CLAIMS, ORDERS].contains(&place) { held.table(place) } else { held.on(place) }
    };
    let late = batch_of([order_with("o-1", json!({ "dieLateTimes": 1 }))]);
    let report = match at {
        Some(at) => world.kill(|gate| hold(gate, at)).await,
        None => world.send(&late).await,
    };
    assert_eq!(history(&report), [("m-o-1", 1, "crashed"), ("m-o-1", 2, then)], "{what}");
    let of = world.placed();
    assert!(
        of.iter().map(|(id, times)| (&**id, *times)).eq(placed.iter().copied()),
        "{what}: {of:?}"
    );
    let arrivals = world.dynamodb().items(PARCELS).unwrap();
    let arrivals: Vec<_> = arrivals.iter().map(|parcel| &parcel["arrivals"]["N"]).collect();
    let expected = json!(arrived.to_string());
    assert_eq!(arrivals, if arrived == 0 { vec![] } else { vec![&expected] }, "{what}");
    let claims = world.claims();
    let is_mutex = what.contains("SCRIPTED_MUTEX");
    assert_eq!(claims.len(), usize::from(!is_mutex), "{what}");
    let left = |claim: &serde_json::Value| claim.get("outbox").or(claim.get("steps")).is_some();
    assert!(!claims.iter().any(left), "{what}: {claims:?}");
    if then == "executed" && !what.contains("SCRIPTED_OPTIMISTIC") {
        let line = report.records().last().unwrap().line.as_ref().unwrap();
        assert_eq!(line.lost_attempts, 1, "{what}: its handler is told");
    }
    if let Some((Apply::After, CLAIMS, 0)) = at {
        let takeover = &report.invocations[1].invocation.dynamodb;
        assert_eq!(costs::billed(takeover, 1), [2.0 + 1.0, 1.0], "with the order");
    }
}

#[tokio::test]
async fn an_order_whose_process_dies_is_placed_once_unless_nobody_knows_of_its_effect() {
    // More at once would make each other late.
    stream::iter(deaths()).map(die).buffer_unordered(6).collect::<()>().await;
}
