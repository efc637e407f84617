//! The results of runs for a terminal.

use std::{collections::BTreeMap, fmt};

use comfy_table::{
    Attribute, Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle,
};

use lambda_idempotency_chaos::{Findings, Offence, Violation};

use super::run::List;
use crate::terminal::printable;

/// The result of an audit, for a terminal.
pub(crate) struct Summary<'a> {
    /// The settings.
    pub(crate) subtitle: String,
    /// Numbers with their meaning.
    pub(crate) numbers: Vec<(u64, &'static str)>,
    pub(crate) findings: &'a Findings,
    /// Further tables.
    pub(crate) lists: Vec<List>,
    /// The sentence that says whether all went well.
    pub(crate) verdict: String,
}

/// How many violations of a kind are shown.
const SHOWN: usize = 10;

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", printable(&self.subtitle))?;
        for (number, meaning) in &self.numbers {
            writeln!(f, "{meaning:<52}{number:>9}")?;
        }
        for list in self.lists.iter().filter(|list| !list.rows.is_empty()) {
            write!(f, "\n{}\n{}\n", list.title, table(list))?;
        }
        violations(f, self.findings)?;
        write!(f, "\n{}", self.verdict)
    }
}

/// Each violation, with the history of its order: a line for each execution.
fn violations(f: &mut fmt::Formatter<'_>, findings: &Findings) -> fmt::Result {
    let mut of_kind: BTreeMap<Offence, usize> = BTreeMap::new();
    for Violation { offence, times, what, trace } in &findings.violations {
        let nth = of_kind.entry(*offence).or_default();
        *nth += 1;
        if *nth > SHOWN {
            continue;
        }
        let times = if *times > 1 { format!(", {times} times") } else { String::new() };
        writeln!(f, "\n{offence:?}{times}: {}", printable(what))?;
        for execution in trace {
            writeln!(f, "    {}", printable(execution))?;
        }
    }
    for (offence, count) in of_kind.into_iter().filter(|(_, count)| *count > SHOWN) {
        writeln!(f, "\n{offence:?}: {} more", count - SHOWN)?;
    }
    Ok(())
}

/// A table as wide as it has to be, or as the terminal. Numbers are on the right.
pub(crate) fn table(list: &List) -> Table {
    let mut table = Table::new();
    let style = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    table.load_style(style);
    // Cells are wrapped in a terminal only: where the width is unknown, they are hard to read then.
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(
        list.header.iter().map(|title| Cell::new(title).add_attribute(Attribute::Bold)),
    );
    for row in &list.rows {
        table.add_row(row.iter().map(|text| {
            let cell = Cell::new(printable(text));
            let is_number = text.parse::<f64>().is_ok();
            cell.set_alignment(if is_number { CellAlignment::Right } else { CellAlignment::Left })
        }));
    }
    table
}
