//! The measured table of the stores has the figures that a benchmark has recorded.

use std::collections::BTreeSet;

use crate::read;

#[path = "../../figures/benches/stores/table.rs"]
mod table;

/// Where `cargo bench -p lambda-idempotency-figures --bench stores -- --record` writes them.
const FIGURES: &str = "tests/figures/stores.tsv";
const PAGE: &str = "docs/stores.md";

#[test]
fn the_table_of_stores_is_what_was_recorded() {
    let shown = table::guide(&read(FIGURES)).expect("figures");
    let page = read(PAGE);
    assert!(page.contains(table::END) && page.matches(table::BEGIN).count() == 1, "{PAGE}");
    assert!(page.contains(&shown), "{PAGE} has other figures than {FIGURES}:\n\n{shown}");
}

/// Nothing was left out because it is not flattering.
#[test]
fn every_store_was_measured_with_every_load() {
    let figures = read(FIGURES);
    let loads = figures.lines().skip(2).filter_map(|line| {
        let mut cells = line.split('\t');
        let (store, function) = (cells.next()?, cells.next()?);
        let (delivered, records) = (cells.next()?, cells.next()?);
        (function == "stored").then(|| format!("{store}: {records} {delivered}"))
    });
    let loads: BTreeSet<String> = loads.collect();
    for store in ["dynamodb", "postgres", "redis"] {
        for load in ["new", "duplicates", "three of ten duplicates"] {
            for records in ["1", "100", "1000"] {
                let is_one_of_ten = records == "1" && load.starts_with("three");
                assert_eq!(
                    loads.contains(&format!("{store}: {records} {load}")),
                    !is_one_of_ten,
                    "{store}: {records} {load}"
                );
            }
        }
    }
}
