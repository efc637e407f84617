//! Files that commands read, or standard input in their place.

use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

const REMEDY: &str = "Name a file, or `-` for standard input. `lambda-idempotency event sqs --body '...' > event.json` makes an event.";

/// Whether somebody is yet to write to standard input, or to close it.
pub(crate) static IS_WAITED_FOR: AtomicBool = AtomicBool::new(false);

/// The text of a file; `-` is standard input, which can be read once.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    static IS_READ: AtomicBool = AtomicBool::new(false);
    let failed =
        |error| Failure::from(format!("cannot read {}: {error}", path.display())).remedy(REMEDY);
    if path != Path::new("-") {
        return std::fs::read_to_string(path).map_err(failed);
    }
    if IS_READ.swap(true, Ordering::Relaxed) {
        return Err("standard input (`-`) is given more than once, and can be read once".into());
    }
    let mut text = String::new();
    IS_WAITED_FOR.store(true, Ordering::Relaxed);
    let read = std::io::stdin().read_to_string(&mut text);
    IS_WAITED_FOR.store(false, Ordering::Relaxed);
    read.map_err(failed)?;
    Ok(text)
}
