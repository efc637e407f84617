//! The measured table of the stores has the figures that a benchmark has recorded, and those of every load.

use crate::read;

#[path = "../../figures/benches/stores/table.rs"]
mod table;

#[test]
fn the_table_of_stores_is_what_was_recorded_of_every_load() {
    // Where `cargo bench -p lambda-idempotency-figures --bench stores -- --record` writes them.
    let figures = read("tests/figures/stores.tsv");
    let shown = table::guide(&figures).expect("figures");
    let page = read("docs/stores.md");
    assert!(page.contains(table::END) && page.matches(table::BEGIN).count() == 1);
    assert!(page.contains(&shown), "docs/stores.md has other figures:\n\n{shown}");
    // Nothing was left out because it is not flattering.
    for store in ["dynamodb", "postgres", "redis"] {
        for load in ["new", "duplicates", "three of ten duplicates"] {
            for records in ["1", "100", "1000"] {
                let start = format!("\n{store}\tstored\t{load}\t{records}\t");
                let is_none = records == "1" && load.starts_with("three");
                assert_eq!(figures.contains(&start), !is_none, "{start}");
            }
        }
    }
}
