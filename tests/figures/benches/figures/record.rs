//! The figures of one run in one file, from which the page of the guide is made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::sample::MEASURES;
use crate::worker::Function;

/// The columns beside those of the rounds.
const OTHERS: [&str; 9] = [
    "x_by_hand",
    "x_table",
    "completions",
    "window_p50_ms",
    "window_p99_ms",
    "window_max_ms",
    "peak_mb",
    "start_best_ms",
    "start_ms",
];

/// The figures so far, and what went wrong.
pub(crate) struct Record {
    rows: Vec<String>,
    failures: Vec<String>,
    load: String,
}

impl Record {
    pub(crate) fn new() -> Result<Self> {
        let load = fs::read_to_string("/proc/loadavg")?;
        let load = load.split(' ').next().unwrap_or_default().to_owned();
        Ok(Self { rows: Vec::new(), failures: Vec::new(), load })
    }

    /// Adds what was measured of a function.
    pub(crate) fn row(
        &mut self,
        scenario: &str,
        records: usize,
        function: &Function,
        values: &[(&'static str, f64)],
    ) {
        let values: BTreeMap<_, _> = values.iter().copied().collect();
        let cells = columns().map(|column| values.get(column).copied().map_or("-".into(), cell));
        let cells: Vec<String> = cells.collect();
        let (name, threads) = (function.label, function.threads());
        self.rows.push(format!("{scenario}\t{records}\t{name}\t{threads}\t{}", cells.join("\t")));
    }

    /// Adds a round without figures.
    pub(crate) fn failure(&mut self, what: String) {
        eprintln!("{what}");
        self.failures.push(what);
    }

    /// Writes the file, unless a round failed: its medians would be those of fewer rounds.
    pub(crate) fn write(&self, file: &Path, rounds: usize) -> Result<()> {
        if !self.failures.is_empty() {
            return Err(
                format!("nothing is recorded, because rounds failed: {:?}", self.failures).into()
            );
        }
        let load = &self.load;
        let about = format!(
            "`bash tests/run figures`, {date}, commit {commit}, {processor}, {rustc}, {rounds} rounds, load {load} before it",
            date = said("date", &["-u", "+%F"])?,
            commit = said("git", &["describe", "--always", "--dirty", "--exclude=*"])?,
            processor = processor()?,
            rustc = said("rustc", &["--version"])?,
        );
        let columns: Vec<_> = columns().collect();
        let names = format!("scenario\trecords\tfunction\tthreads\t{}", columns.join("\t"));
        fs::write(file, format!("# {about}\n{names}\n{}\n", self.rows.join("\n")))?;
        Ok(())
    }
}

fn columns() -> impl Iterator<Item = &'static str> {
    MEASURES.iter().map(|(name, _)| *name).chain(OTHERS)
}

/// Three decimals at most.
fn cell(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn processor() -> Result<String> {
    let info = fs::read_to_string("/proc/cpuinfo")?;
    let names = info.lines().filter_map(|line| line.strip_prefix("model name"));
    let names: Vec<_> = names.map(|name| name.trim_start_matches(['\t', ':', ' '])).collect();
    Ok(format!("{} x {}", names.len(), names.first().ok_or("no processor")?))
}

/// What a command prints.
fn said(command: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(command).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{command} {arguments:?}: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
