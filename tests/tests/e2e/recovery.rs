//! Orders whose process is killed, and which nothing delivers again: another function finds and places them.

use std::time::Duration;

use lambda_idempotency_local::{Apply, Fault, Gate, Invocation, Local};
use lambda_idempotency_tests::{
    ORDERS,
    events::{event, notification, order, order_with},
};
use serde_json::{Value, json};

use crate::support::{World, outcomes, scripted_orders};

const TIMEOUT: Duration = Duration::from_secs(3);
/// The timeout, a second of lease grace, a second of clock skew, and a reserve.
const AFTER_THE_LEASE: Duration = Duration::from_millis(5500);

/// The function that takes orders, and the one with the schedule, of the same application and on the same tables.
struct Shop {
    orders: World,
    recovery: Local,
}

impl Shop {
    async fn new() -> Self {
        let function = scripted_orders().env("SCRIPTED_RECOVERABLE", "1");
        let orders = function.clone().timeout(TIMEOUT);
        let orders = World::with(orders, |local| local.retry_delays(Vec::new())).await;
        let scheduled = function
            .name("orders-recovery")
            .env("IDEMPOTENCY_APPLICATION", "orders")
            .env("SCRIPTED_RECOVERY", "1");
        let database = orders.dynamodb().clone();
        let recovery = Local::builder(scheduled).dynamodb(database);
        let recovery = recovery.start().await.unwrap();
        recovery.warm().await.unwrap();
        Self { orders, recovery }
    }

    /// Sends an event, and kills its process while the order's request is held. It is not delivered again.
    async fn kill(&self, event: &Value, apply: Apply) {
        let gate = Gate::new(); // never opened: a request that is held before it is applied is never applied
        let held = Fault::hold(apply, &gate).table(ORDERS).times(1);
        self.orders.dynamodb().faults().add(held);
        let killer = async {
            gate.reached().await;
            assert_eq!(self.orders.kill_in_flight(), 1);
        };
        let (report, ()) = tokio::join!(self.orders.send(event), killer);
        assert_eq!((outcomes(&report), report.dead_letters.len()), (vec!["crashed"], 1));
        let claims = self.orders.claims();
        let kept = claims[0]["payload"]["S"].as_str().unwrap();
        assert!(claims.len() == 1 && kept.contains("o-1"), "{claims:?}");
    }

    async fn recover(&self) -> Invocation {
        self.recovery.invoke(&json!({})).await.unwrap()
    }

    /// Fails unless a completion is all that is left: no payload, and nothing that a recovery would run.
    async fn assert_completed(&self) {
        let claims = self.orders.claims();
        let statuses: Vec<_> = claims.iter().map(|claim| &claim["status"]["S"]).collect();
        assert_eq!(statuses, ["COMPLETED"]);
        let text = json!(claims).to_string();
        assert!(!text.contains("payload") && !text.contains("o-1"), "{text}");
        assert_eq!(done(&self.recover().await), (0, 0));
    }
}

/// How many records a run recovered, and how many others were before it. It read the one that there is.
#[track_caller]
fn done(run: &Invocation) -> (u64, u64) {
    let Some(answer) = run.response() else { panic!("{}", run.result) };
    assert_eq!((&answer["examined"], &answer["isComplete"]), (&json!(1), &json!(true)));
    (answer["recovered"].as_u64().unwrap(), answer["overtaken"].as_u64().unwrap())
}

#[tokio::test]
async fn an_order_whose_process_is_killed_before_the_effect_is_placed_once_by_a_recovery() {
    let shop = Shop::new().await;
    let event = notification("n-1", &order("o-1"));
    shop.kill(&event, Apply::Before).await;
    assert_eq!(done(&shop.recover().await), (0, 0), "its lease has not ended");
    assert!(shop.orders.placed().is_empty());

    tokio::time::sleep(AFTER_THE_LEASE).await;
    assert_eq!(done(&shop.recover().await), (1, 0));
    shop.orders.assert_placed_once(["o-1"]);
    shop.assert_completed().await;
    assert_eq!(outcomes(&shop.orders.send(&event).await), ["replayed"], "a late delivery");
    shop.orders.assert_placed_once(["o-1"]);
}

/// Nobody knows whether the effect happened. The handler is called again and told so, as at a redelivery.
#[tokio::test]
async fn a_recovery_tells_the_handler_of_the_attempt_that_died_after_its_effect() {
    let shop = Shop::new().await;
    // The handler ends its process if it sees no lost attempt.
    let order = order_with("o-1", json!({ "dieLateTimes": 1 }));
    shop.kill(&event("e-1", &order), Apply::After).await;

    tokio::time::sleep(AFTER_THE_LEASE).await;
    let run = shop.recover().await;
    assert_eq!(done(&run), (1, 0));
    assert_eq!(run.records.iter().map(|line| line.lost_attempts).collect::<Vec<_>>(), [1]);
    assert_eq!(shop.orders.placed(), [("o-1".to_owned(), 2)].into());
    shop.assert_completed().await;
}
