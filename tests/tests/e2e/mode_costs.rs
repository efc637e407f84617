//! What a record costs in each mode, with one effect of one write unit. Each row of the table in the guide's page about
//! modes is compared with a measurement.

use lambda_idempotency_local::{FunctionConfig, Table};
use lambda_idempotency_tests::events::{batch_of, order};

use crate::{
    costs,
    support::{World, outcomes, quick_queue, scripted_orders},
};

const PAGE: &str = include_str!("../../../crates/lambda/src/guide/choosing_a_mode.md");
const COSTS: &str = include_str!("../../../crates/lambda/src/guide/cost.md");
/// The price of a million write units in USD, on demand, in us-east-1. The page about costs names it.
const DOLLARS: f64 = 0.625;
const PARCELS: &str = "parcels";

/// A row of the page about modes.
struct Mode {
    row: &'static str,
    function: FunctionConfig,
    /// How many of the write units are those of the table that stands for the queue of messages.
    of_the_queue: f64,
    /// The row of the page about costs, and how many of the units are those of effects that are not in a transaction.
    of_costs: Option<(&'static str, f64)>,
}

fn modes() -> [Mode; 6] {
    let set = |names: &[&str]| {
        names.iter().fold(scripted_orders(), |function, name| function.env(*name, "1"))
    };
    let publishing = |names: &[&str]| set(names).env("SCRIPTED_PARCELS_TABLE", PARCELS);
    [
        Mode {
            row: "claim and complete",
            function: set(&[]),
            of_the_queue: 0.0,
            of_costs: Some(("new", 1.0)),
        },
        Mode {
            row: "the same with two effects, each in a step",
            function: set(&["SCRIPTED_STEPS"]),
            of_the_queue: 0.0,
            of_costs: Some(("new, with two steps", 2.0)),
        },
        Mode {
            row: "the same with one effect and a message",
            function: publishing(&[]),
            of_the_queue: 1.0,
            of_costs: Some(("new, with a message to send", 1.0)),
        },
        Mode {
            row: "`Transactional`",
            function: set(&["SCRIPTED_TRANSACTION"]),
            of_the_queue: 0.0,
            of_costs: Some(("new, in a transaction, with its effect", 0.0)),
        },
        Mode {
            row: "the same with a message",
            function: publishing(&["SCRIPTED_TRANSACTION"]),
            of_the_queue: 1.0,
            of_costs: None,
        },
        Mode {
            row: "`Optimistic`",
            function: set(&["SCRIPTED_TRANSACTION", "SCRIPTED_OPTIMISTIC"]),
            of_the_queue: 0.0,
            of_costs: Some(("new, in an optimistic transaction, with its effect", 0.0)),
        },
    ]
}

#[tokio::test]
async fn the_write_units_of_a_record_are_those_of_the_page() {
    assert!(COSTS.contains(&format!("{DOLLARS} USD")), "cost.md has another price");
    for Mode { row: mode, function, of_the_queue, of_costs } in modes() {
        let tables = |local: lambda_idempotency_local::LocalBuilder| {
            local.sqs(quick_queue()).table(Table::new(PARCELS, "id"))
        };
        let world = World::with(function, tables).await;
        let before = world.dynamodb().usage();
        assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
        let mut usage = world.dynamodb().usage().since(&before);
        usage.write_units -= of_the_queue;
        if let Some((row, of_effects)) = of_costs {
            costs::documented_record(row, &usage, of_effects);
        }
        let used = usage.write_units;
        let row = format!("| {mode} | {used} | {:.3} |", used * DOLLARS);
        println!("{row}");
        assert!(PAGE.lines().any(|line| line.starts_with(&row)), "the page lacks this row:\n{row}");
    }
}
