//! What a record costs in each mode, with one effect of one write unit, compared with the tables of the guide.

use lambda_idempotency_local::{FunctionConfig, LocalBuilder, Table};
use lambda_idempotency_tests::events::{batch_of, order};

use crate::{
    costs,
    support::{World, outcomes, scripted_orders},
};

const PARCELS: &str = "parcels";

/// The row of the page; the variables of the function; how many of the write units are those of the table that stands for the
/// queue of messages, and how many those of effects that are not in a transaction; the requests.
const MODES: [(&str, &[&str], f64, f64, u64); 7] = [
    ("new", &[], 0.0, 1.0, 3),
    ("new, with two steps", &["SCRIPTED_STEPS"], 0.0, 2.0, 6),
    ("new, with a message to send", &[PARCELS], 1.0, 1.0, 5),
    ("new, in a transaction, with its effect", &["SCRIPTED_TRANSACTION"], 0.0, 0.0, 2),
    (
        "new, in a transaction, with its effect and a message",
        &["SCRIPTED_TRANSACTION", PARCELS],
        1.0,
        0.0,
        4,
    ),
    (
        "new, in an optimistic transaction, with its effect",
        &["SCRIPTED_TRANSACTION", "SCRIPTED_OPTIMISTIC"],
        0.0,
        0.0,
        1,
    ),
    ("new, of a mutex", &["SCRIPTED_MUTEX"], 0.0, 1.0, 3),
];

#[tokio::test]
async fn the_write_units_of_a_record_are_those_of_the_page() {
    for (row, variables, of_the_queue, of_effects, requests) in MODES {
        let set = |function: FunctionConfig, name: &&str| match *name {
            PARCELS => function.env("SCRIPTED_PARCELS_TABLE", PARCELS),
            name => function.env(name, "1"),
        };
        let function = variables.iter().fold(scripted_orders(), set);
        let tables = |local: LocalBuilder| local.table(Table::new(PARCELS, "id"));
        let world = World::with(function, tables).await;
        let before = world.dynamodb().usage();
        assert_eq!(outcomes(&world.send(&batch_of([order("o-1")])).await), ["executed"]);
        let mut usage = world.dynamodb().usage().since(&before);
        usage.write_units -= of_the_queue;
        costs::documented_record(row, &usage, of_effects);
        assert_eq!(usage.requests(), requests, "{row}: {usage:?}");
        assert!(!world.claims().iter().any(|claim| claim.get("steps").is_some()), "{row}");
    }
}
