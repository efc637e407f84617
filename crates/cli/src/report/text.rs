//! The report of a run for a terminal: all of its page but the timelines.

use std::fmt::Write as _;

use comfy_table::{
    Attribute, Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle,
};

use super::run::{List, Run};
use crate::terminal::printable;

pub(crate) fn text(run: &Run<'_>) -> String {
    let mut text = format!("{}\n\n", printable(&run.subtitle));
    for (number, meaning) in &run.numbers {
        let _ = writeln!(text, "{meaning:<52}{number:>9}");
    }
    for list in run.lists.iter().filter(|list| !list.rows.is_empty()) {
        let _ = write!(text, "\n{}\n{}\n", list.title, table(list));
    }
    let _ = write!(text, "\n{}", run.verdict.1);
    text
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
