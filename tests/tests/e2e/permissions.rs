//! The functions use exactly the DynamoDB permissions that their templates grant, for each table.

use std::collections::BTreeSet;
use std::time::Duration;

use lambda_idempotency_local::{Apply, Fault, FaultId, Gate, SqsConfig, Table, Usage};
use lambda_idempotency_tests::{
    CLAIMS, ORDERS,
    events::{batch, batch_of, event, message, notification, order, order_with},
    function,
};
use serde_json::{Value, json};

use crate::support::{World, orders, outcomes, returned, scripted_orders};

#[path = "../template/document.rs"]
#[allow(dead_code, reason = "shared with the template's own tests")]
mod document;

const TIMEOUT: Duration = Duration::from_secs(3);

/// Orders from each source that are placed and replayed, one at a time and several in a batch.
async fn orders_that_succeed(world: &World) {
    let names: Vec<String> = (0..10).map(|number| format!("o-{number}")).collect();
    let ten = batch_of(names.iter().map(|name| order(name)));
    assert_eq!(outcomes(&world.send(&ten).await), ["executed"; 10]);
    assert_eq!(outcomes(&world.send(&ten).await), ["replayed"; 10]);
    let one = batch([message("m", &order("one"))]);
    assert_eq!(outcomes(&world.send(&one).await), ["executed"]);
    assert_eq!(outcomes(&world.send(&one).await), ["replayed"]);
    for event in [notification("n", &order("n")), event("e", &order("e"))] {
        assert_eq!(outcomes(&world.send(&event).await), ["executed"]);
    }
}

/// All that the library does with its table: claims, replays, takeovers, releases, undone claims and
/// completions, for one record and for several.
async fn everything(world: &World) {
    orders_that_succeed(world).await;

    // Releases, alone and in a batch; the second delivery takes the released keys over.
    let failing = |name| order_with(name, json!({ "failTimes": 1 }));
    for orders in [vec![failing("f")], vec![failing("g"), failing("h"), failing("i")]] {
        let event = batch_of(orders);
        world.invoke(&event).await.unwrap();
        assert!(returned(&world.invoke(&event).await.unwrap().result).is_empty());
    }
    let nothing = ["r", "s"].map(|name| order_with(name, json!({ "quantity": 0 })));
    world.invoke(&batch_of(nothing)).await.unwrap();
    undo(world, "p", 1).await;
    undo(world, "q", 3).await;

    // A takeover from a lost attempt: only this delivery has to wait for its next one.
    let report = world.send(&batch_of([order_with("d", json!({ "dieTimes": 1 }))])).await;
    assert_eq!(outcomes(&report), ["crashed", "executed"]);
}

/// Sixteen handlers, the limit, run until they are stopped. The other records, `records` of them, are
/// claimed, never start, and their claims are undone.
async fn undo(world: &World, name: &str, records: usize) {
    let slow = |number| order_with(&format!("{name}-{number}"), json!({ "delayMs": 600_000 }));
    let event = batch_of((0..16 + records).map(slow));
    let invocation = world.invoke(&event).await.unwrap();
    assert_eq!(returned(&invocation.result).len(), 16 + records);
    let count = |outcome: &str| {
        invocation.records.iter().filter(|line| line.outcome.as_str() == outcome).count()
    };
    assert_eq!((count("timed_out"), count("returned")), (16, records));
}

/// A claim is never answered, because `held` holds its requests. It is undone, with nothing else to
/// write beside it.
async fn undo_in_doubt(world: &World, held: FaultId) -> u64 {
    let faults = world.dynamodb().faults();
    let invocation = world.invoke(&batch_of([order("in-doubt")])).await.unwrap();
    assert_eq!(invocation.records[0].outcome.as_str(), "unavailable");
    let held_requests = faults.injected(held);
    faults.remove(held);
    held_requests
}

/// Counts the operations on each table, with a fault for each that does nothing.
struct Watch(Vec<(&'static str, &'static str, FaultId)>);

/// The table of the ledger of `prove`.
const LEDGER: &str = "ledger";

impl Watch {
    const OPERATIONS: [&str; 14] = [
        "GetItem",
        "BatchGetItem",
        "PutItem",
        "DeleteItem",
        "UpdateItem",
        "BatchExecuteStatement",
        "ExecuteStatement",
        "ExecuteTransaction",
        "BatchWriteItem",
        "TransactGetItems",
        "TransactWriteItems",
        "Query",
        "Scan",
        "DescribeTable",
    ];

    fn new(world: &World) -> Self {
        let faults = world.dynamodb().faults();
        let watch = |operation, table| {
            let nothing = Fault::delay(Duration::ZERO).on(operation).table(table);
            (operation, table, faults.add(nothing))
        };
        let tables = [CLAIMS, ORDERS, LEDGER];
        let pairs = Self::OPERATIONS.into_iter().flat_map(|o| tables.map(|table| (o, table)));
        Self(pairs.map(|(operation, table)| watch(operation, table)).collect())
    }

    /// The operations seen on a table.
    fn of(&self, world: &World, table: &str) -> BTreeSet<String> {
        let faults = world.dynamodb().faults();
        let seen = self.0.iter().filter(|(_, on, id)| *on == table && faults.injected(*id) > 0);
        seen.map(|(operation, ..)| (*operation).to_owned()).collect()
    }

    fn count(&self, world: &World) -> u64 {
        self.0.iter().map(|(.., id)| world.dynamodb().faults().injected(*id)).sum()
    }
}

/// The actions that the role's statement allows on a table, without `dynamodb:`.
fn granted(table: &str) -> BTreeSet<String> {
    granted_by("template.yaml", "OrdersRole", table)
}

fn granted_by(template: &str, role: &str, table: &str) -> BTreeSet<String> {
    let path = format!("{}/../{template}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let template = document::long_form(serde_yaml_ng::from_str(&text).unwrap());
    let policies = &template["Resources"][role]["Properties"]["Policies"];
    let statements = policies
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|policy| policy["PolicyDocument"]["Statement"].as_array().unwrap().iter());
    let arn = document::get_att(&format!("{table}.Arn"));
    let of_table = statements.filter(|statement| statement["Resource"] == arn);
    let actions = of_table.flat_map(|statement| statement["Action"].as_array().unwrap());
    actions
        .filter_map(Value::as_str)
        .map(|action| action.strip_prefix("dynamodb:").unwrap().to_owned())
        .collect()
}

/// The actions of the operations on the idempotency table. Statements have separate actions, which are
/// taken from the whole usage, because only this table is used with statements.
fn actions(operations: &BTreeSet<String>, usage: &Usage) -> BTreeSet<String> {
    let single = operations.iter().filter(|name| *name != "BatchExecuteStatement").cloned();
    let statements = usage.actions.keys().filter(|name| name.starts_with("PartiQL")).cloned();
    single.chain(statements).collect()
}

/// The deployed function uses the orders table as its role allows.
#[tokio::test]
async fn the_deployed_handler_uses_what_the_template_grants_and_nothing_else() {
    let world = World::of(orders()).await;
    let watch = Watch::new(&world);
    orders_that_succeed(&world).await;
    let usage = world.dynamodb().usage();
    assert_eq!(watch.count(&world), usage.requests(), "a table or an operation is not watched");
    assert_eq!(watch.of(&world, ORDERS), granted("OrdersTable"));
    let on_claims = actions(&watch.of(&world, CLAIMS), &usage);
    assert!(on_claims.is_subset(&granted("IdempotencyTable")), "{on_claims:?}");
}

/// The library, with handlers that fail, die and take too long.
#[tokio::test]
async fn the_library_uses_what_the_template_grants_and_nothing_else() {
    // Long enough that the lease of the dead process has ended at the next delivery.
    let visibility = Some(Duration::from_millis(6500));
    let queue = SqsConfig { visibility, ..SqsConfig::default() };
    let function = scripted_orders().timeout(TIMEOUT).env("SCRIPTED_STEPS", "1");
    let world = World::with(function, |local| local.sqs(queue)).await;
    // Before the watch: only the first fault that matches a request is applied.
    let hold = Fault::hold(Apply::After, &Gate::new()).on("PutItem").table(CLAIMS);
    let held = world.dynamodb().faults().add(hold);
    let watch = Watch::new(&world);
    let held_requests = undo_in_doubt(&world, held).await;
    everything(&world).await;
    let usage = world.dynamodb().usage();
    let watched = watch.count(&world) + held_requests;
    assert_eq!(watched, usage.requests(), "a table or an operation is not watched");

    let on_orders = watch.of(&world, ORDERS);
    assert_eq!(on_orders, granted("OrdersTable"));
    let on_claims = actions(&watch.of(&world, CLAIMS), &usage);
    let granted = granted("IdempotencyTable");
    let missing: Vec<_> = on_claims.difference(&granted).collect();
    assert!(missing.is_empty(), "the template does not grant {missing:?}");
    let unused: Vec<_> = granted.difference(&on_claims).collect();
    assert!(unused.is_empty(), "the template grants {unused:?}, which nothing here uses");
}

/// The function of `prove` writes to its ledger, and does nothing else there, whatever an order asks for.
#[tokio::test]
async fn the_function_of_prove_uses_what_its_template_grants_and_nothing_else() {
    let function = function(env!("CARGO_BIN_EXE_prove-under-test")).env("PROVE_LEDGER", LEDGER);
    let ledger = Table::new(LEDGER, "line");
    let world = World::with(function, |local| local.table(ledger)).await;
    let watch = Watch::new(&world);
    let asks = |order: u64, act: &str| json!({ "run": "r", "order": order, "act": act });
    let acts = ["place", "place", "slow", "throw", "die", "die-late", "fail", "throttle"];
    let batches = [(0..5).map(|number| asks(number, "place")).collect::<Vec<_>>()];
    let single = acts.iter().zip(10..).map(|(act, number)| vec![asks(number, act)]);
    for orders in batches.into_iter().chain(single) {
        let event = batch_of(orders);
        world.invoke(&event).await.unwrap();
        world.invoke(&event).await.unwrap();
    }
    let usage = world.dynamodb().usage();
    assert_eq!(watch.count(&world), usage.requests(), "a table or an operation is not watched");
    let granted = |table| granted_by("docs/prove/template.yaml", "Role", table);
    assert_eq!(watch.of(&world, LEDGER), granted("Ledger"));
    let on_claims = actions(&watch.of(&world, CLAIMS), &usage);
    assert!(on_claims.is_subset(&granted("IdempotencyTable")), "{on_claims:?}");
    // Not the order that died before its effect, whose lease stands, and the one that fails permanently.
    let lines = world.dynamodb().items(LEDGER).unwrap();
    let effects: BTreeSet<_> = lines
        .iter()
        .filter(|line| line["step"]["S"] == "effect")
        .map(|line| line["order"]["N"].to_string())
        .collect();
    let expected = ["0", "1", "2", "3", "4", "10", "11", "12", "13", "15", "17"];
    assert_eq!(effects, expected.map(|number| format!("\"{number}\"")).into());
}
