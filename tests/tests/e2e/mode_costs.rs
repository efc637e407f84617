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

/// The rows, the functions, how many of the write units are those of the table that stands for the queue of messages, and
/// the row of the page about costs, with how many of the units are those of effects that are not in a transaction.
fn modes() -> [(&'static str, FunctionConfig, f64, Option<(&'static str, f64)>); 6] {
    let set = |names: &[&str]| {
        names.iter().fold(scripted_orders(), |function, name| function.env(*name, "1"))
    };
    let publishing = |names: &[&str]| set(names).env("SCRIPTED_PARCELS_TABLE", PARCELS);
    [
        ("claim and complete", set(&[]), 0.0, Some(("new", 1.0))),
        (
            "the same with two effects, each in a step",
            set(&["SCRIPTED_STEPS"]),
            0.0,
            Some(("new, with two steps", 2.0)),
        ),
        (
            "the same with one effect and a message",
            publishing(&[]),
            1.0,
            Some(("new, with a message to send", 1.0)),
        ),
        (
            "`.transactional()`",
            set(&["SCRIPTED_TRANSACTION"]),
            0.0,
            Some(("new, in a transaction, with its effect", 0.0)),
        ),
        ("the same with a message", publishing(&["SCRIPTED_TRANSACTION"]), 1.0, None),
        (
            "`.optimistic()`",
            set(&["SCRIPTED_TRANSACTION", "SCRIPTED_OPTIMISTIC"]),
            0.0,
            Some(("new, in an optimistic transaction, with its effect", 0.0)),
        ),
    ]
}

#[tokio::test]
async fn the_write_units_of_a_record_are_those_of_the_page() {
    assert!(COSTS.contains(&format!("{DOLLARS} USD")), "cost.md has another price");
    for (mode, function, of_the_queue, of_costs) in modes() {
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
