//! What a record costs in each mode, with one effect of one write unit, compared with the table of the guide's page about
//! costs.

use lambda_idempotency_local::{FunctionConfig, Table};
use lambda_idempotency_tests::events::{batch_of, order};

use crate::{
    costs,
    support::{World, outcomes, quick_queue, scripted_orders},
};

const PARCELS: &str = "parcels";

struct Mode {
    /// The row of the page.
    row: &'static str,
    function: FunctionConfig,
    /// How many of the write units are those of the table that stands for the queue of messages.
    of_the_queue: f64,
    /// How many of the units are those of effects that are not in a transaction.
    of_effects: f64,
}

fn modes() -> [Mode; 7] {
    let set = |names: &[&str]| {
        names.iter().fold(scripted_orders(), |function, name| function.env(*name, "1"))
    };
    let publishing = |names: &[&str]| set(names).env("SCRIPTED_PARCELS_TABLE", PARCELS);
    let mode =
        |row, function, of_the_queue, of_effects| Mode { row, function, of_the_queue, of_effects };
    [
        mode("new", set(&[]), 0.0, 1.0),
        mode("new, with two steps", set(&["SCRIPTED_STEPS"]), 0.0, 2.0),
        mode("new, with a message to send", publishing(&[]), 1.0, 1.0),
        mode("new, in a transaction, with its effect", set(&["SCRIPTED_TRANSACTION"]), 0.0, 0.0),
        mode(
            "new, in a transaction, with its effect and a message",
            publishing(&["SCRIPTED_TRANSACTION"]),
            1.0,
            0.0,
        ),
        mode(
            "new, in an optimistic transaction, with its effect",
            set(&["SCRIPTED_TRANSACTION", "SCRIPTED_OPTIMISTIC"]),
            0.0,
            0.0,
        ),
        mode("new, of a mutex", set(&["SCRIPTED_MUTEX"]), 0.0, 1.0),
    ]
}

#[tokio::test]
async fn the_write_units_of_a_record_are_those_of_the_page() {
    for Mode { row, function, of_the_queue, of_effects } in modes() {
        let tables = |local: lambda_idempotency_local::LocalBuilder| {
            local.sqs(quick_queue()).table(Table::new(PARCELS, "id"))
        };
        let world = World::with(function, tables).await;
        let before = world.dynamodb().usage();
        assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
        let mut usage = world.dynamodb().usage().since(&before);
        usage.write_units -= of_the_queue;
        costs::documented_record(row, &usage, of_effects);
    }
}
