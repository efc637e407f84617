//! What happened in a run: as text, and for `invoke` as one page of HTML, with a timeline for each key and the ledger of
//! effects.
//!
//! The page holds everything that it needs, and no script. Everything that comes from a function or an event is escaped,
//! and the page's policy lets a browser run no script.

mod html;
mod keys;
mod moment;
mod names;
mod observed;
mod page;
mod run;
mod story;
mod text;
mod timeline;

use std::path::Path;

pub(crate) use names::short;
pub(crate) use run::{List, Run};
pub(crate) use story::{Story, StoryEffect, StoryInvocation};
pub(crate) use text::{Summary, table};

use crate::failure::Failure;

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
    eprintln!("The page is in {}.", path.display());
    Ok(())
}
