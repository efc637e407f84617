//! The report of a run: as text, and for `invoke` as one page of HTML, with a timeline for each key.
//!
//! The page holds everything that it needs, and no script. Everything that comes from a function or an event is escaped,
//! and the page's policy lets a browser run no script.

mod page;
mod story;

use std::path::Path;

use comfy_table::{
    Attribute, Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle,
};
pub(crate) use story::{List, Run, Story, StoryEffect, StoryInvocation, short};

use crate::{
    failure::Failure,
    terminal::{printable, tell},
};

/// Checks before a run that its page can be written, so that a wrong path does not cost the run.
pub(crate) fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
        let text =
            format!("cannot write {}: there is no such directory, or it is one", path.display());
        return Err(text.into());
    }
    Ok(())
}

/// Writes the page of a run to a file.
pub(crate) async fn write(run: &Run<'_>, path: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::from(format!("cannot write {}: {error}", path.display()));
    tokio::fs::write(path, page::page(run)).await.map_err(failed)?;
    tell(format_args!("The page is in {}.", path.display()));
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
    // Eight columns fit into a terminal of 100 columns.
    table.column_iter_mut().for_each(|column| _ = column.set_padding((0, 1)));
    table
}
