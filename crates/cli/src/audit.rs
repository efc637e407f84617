//! The output of `chaos` and `prove`: how far they are, and the result of the audit.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    io::IsTerminal as _,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use lambda_idempotency_chaos::{Findings, Offence, Violation};

use crate::{
    report::{List, table},
    terminal::{printable, tell},
};

/// How often it is said.
const EVERY: Duration = Duration::from_secs(5);

/// Counts what is done.
pub(crate) struct Progress {
    done: AtomicU64,
    total: u64,
    what: &'static str,
}

impl Progress {
    pub(crate) fn new(total: u64, what: &'static str) -> Self {
        Self { done: AtomicU64::new(0), total, what }
    }

    pub(crate) fn set(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Says during `work` how much is done, if stderr is a terminal.
    pub(crate) async fn during<T>(&self, work: impl Future<Output = T>, hidden: bool) -> T {
        let is_shown = !hidden && std::io::stderr().is_terminal();
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(EVERY, &mut work).await {
                Ok(done) => return done,
                Err(_) if is_shown => {
                    let done = self.done.load(Ordering::Relaxed);
                    tell(format_args!("{done} of {} {}", self.total, self.what));
                }
                Err(_) => {}
            }
        }
    }
}

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

/// A table of names and counts.
pub(crate) fn counts<K: Display>(
    title: &'static str,
    header: &'static [&'static str],
    counts: &BTreeMap<K, u64>,
) -> List {
    let rows = counts.iter().map(|(name, count)| vec![name.to_string(), count.to_string()]);
    List { title, header, rows: rows.collect() }
}
