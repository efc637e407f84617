//! The effect ledger: a file in which the function's processes record starts and effects.
//!
//! A process appends a line when a handler starts, and a line that *is* the effect. Both are system
//! calls that have happened or not, and a written line survives its process. The lines of all
//! processes are in one file, so their order is the order in which they were written.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::error::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Step {
    Start,
    Effect,
    /// The handler has collected an effect that is committed with the completion.
    Collected,
    /// The handler has returned from the step in which it had its effect.
    Kept,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) step: Step,
    pub(crate) order: String,
    pub(crate) message: String,
    pub(crate) pid: u32,
    pub(crate) fence: u64,
    pub(crate) name: String,
}

/// The name of the effect of the scripted function.
const PLACED: &str = "placed";

/// A ledger that is being written, read from its beginning. Deleted when it is dropped.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    /// The beginning of a line whose end is not yet written.
    rest: Vec<u8>,
}

impl Ledger {
    /// A new, empty one.
    pub(crate) fn create() -> Result<Self, Error> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("lambda-idempotency-{}-{serial}.ledger", std::process::id());
        let path = std::env::temp_dir().join(name);
        let opened = File::options().read(true).write(true).create_new(true).open(&path);
        let file = opened.map_err(|error| unusable(&path, &error))?;
        Ok(Self { path, file, rest: Vec::new() })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the lines written since the last call.
    pub(crate) fn read(&mut self) -> Result<Vec<Line>, Error> {
        let read = self.file.read_to_end(&mut self.rest);
        read.map_err(|error| unusable(&self.path, &error))?;
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let read: Vec<u8> = self.rest.drain(..whole).collect();
        let text = String::from_utf8_lossy(&read);
        text.lines()
            .map(|line| {
                parse(line).ok_or_else(|| {
                    Error::Rig(format!(
                        "a line of the ledger, `{line}`; is the binary the scripted orders function?"
                    ))
                })
            })
            .collect()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        // The file is in the directory for temporary files, and a destructor cannot report an error.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    let path = path.display();
    Error::Rig(format!(
        "the ledger {path}: {error}; is the directory for temporary files writable?"
    ))
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.split(' ');
    let step = match words.next()? {
        "start" => Step::Start,
        "effect" => Step::Effect,
        "collected" => Step::Collected,
        "kept" => Step::Kept,
        _ => return None,
    };
    attempt(step, words)
}

/// Order, message, process and fence, separated by spaces.
pub(crate) fn attempt<'a>(step: Step, mut words: impl Iterator<Item = &'a str>) -> Option<Line> {
    let (order, message) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (pid, fence) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let name = PLACED.to_owned();
    words.next().is_none().then_some(Line { step, order, message, pid, fence, name })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_line_is_read_when_it_is_complete() {
        let mut ledger = Ledger::create().unwrap();
        let mut process = File::options().append(true).open(ledger.path()).unwrap();
        process.write_all(b"start o-1 m-1-0 42 7\neffect o-1 m-1").unwrap();
        let line = Line {
            step: Step::Start,
            order: "o-1".to_owned(),
            message: "m-1-0".to_owned(),
            pid: 42,
            fence: 7,
            name: PLACED.to_owned(),
        };
        assert_eq!(ledger.read().unwrap(), std::slice::from_ref(&line));
        assert_eq!(ledger.read().unwrap(), []);
        process.write_all(b"-0 42 7\n").unwrap();
        assert_eq!(ledger.read().unwrap(), [Line { step: Step::Effect, ..line }]);
        let path = ledger.path().to_owned();
        drop(ledger);
        assert!(!path.exists());
    }

    #[test]
    fn an_invalid_line_is_refused() {
        for line in ["", "stop o-1 m 1 2", "start o-1 m 1", "start o-1 m x 2", "start o m 1 2 3"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
