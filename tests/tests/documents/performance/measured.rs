//! The figures of a file: a comment that says where they are from, the names of columns, and a row for each function.

use std::collections::BTreeMap;

/// Scenario, records at a time, function, threads, column.
type Name = (String, usize, String, String, String);

pub(crate) struct Measured {
    /// The comment.
    pub(crate) about: String,
    figures: BTreeMap<Name, f64>,
}

impl Measured {
    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let about =
            lines.next().and_then(|line| line.strip_prefix("# ")).expect("a comment").to_owned();
        let columns: Vec<&str> = lines.next().expect("the columns").split('\t').collect();
        let mut figures = BTreeMap::new();
        for line in lines {
            let cells: Vec<&str> = line.split('\t').collect();
            assert_eq!(cells.len(), columns.len(), "{line}");
            let [scenario, records, function, threads, values @ ..] = &cells[..] else {
                panic!("{line}: too short")
            };
            for (column, value) in
                columns.iter().skip(4).zip(values).filter(|(_, value)| **value != "-")
            {
                let name = |text: &&str| (*text).to_owned();
                let records = records.parse().expect("a number of records");
                let place = (name(scenario), records, name(function), name(threads), name(column));
                let value = value.parse().expect("a figure");
                assert!(figures.insert(place, value).is_none(), "{line}: twice");
            }
        }
        Self { about, figures }
    }

    /// A figure, or a panic: a file without it is of a run that was not whole.
    pub(crate) fn get(
        &self,
        scenario: &str,
        records: usize,
        function: &str,
        threads: &str,
        column: &str,
    ) -> f64 {
        let name: Name = (scenario.into(), records, function.into(), threads.into(), column.into());
        *self.figures.get(&name).unwrap_or_else(|| panic!("no figure {name:?}"))
    }
}
