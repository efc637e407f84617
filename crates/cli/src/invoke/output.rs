//! The function's output: shown with `-v`; otherwise the last lines are kept, to show them after a crash.

use std::{
    collections::VecDeque,
    io::IsTerminal as _,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lambda_idempotency_local::{Invocation, InvocationResult, OutputLine};

use crate::terminal::tell;

/// How many lines to keep for a crash.
const KEPT: usize = 50;
const LEVELS: [&str; 5] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"];

fn is_below(line: &OutputLine, level: &str) -> bool {
    let mut below = LEVELS.iter().take_while(|one| !one.eq_ignore_ascii_case(level));
    below.any(|one| line.text.contains(&format!("\"level\":\"{one}\"")))
}

pub(crate) struct Output {
    verbose: bool,
    dim: bool,
    /// The level that the user sets for the function, which logs all lines about records for the report.
    level: Option<String>,
    kept: Mutex<VecDeque<OutputLine>>,
    /// Lines about records came that are not JSON.
    has_text: AtomicBool,
}

impl Output {
    pub(crate) fn new(verbose: bool, level: Option<String>) -> Self {
        let dim = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { verbose, dim, level, kept: Mutex::default(), has_text: AtomicBool::new(false) }
    }

    /// Handles a line that a process wrote.
    pub(crate) fn take(&self, line: OutputLine) {
        if !line.is_record && ["key_hash", "outcome"].iter().all(|name| line.text.contains(name)) {
            self.has_text.store(true, Ordering::Relaxed);
        }
        let is_hidden = self.level.as_ref().is_some_and(|level| is_below(&line, level));
        if line.is_record && (is_hidden || !self.verbose) {
            return; // the table shows it
        }
        if self.verbose {
            return self.show(&line);
        }
        let mut kept = self.kept();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// Whether the function has logged its records as text.
    pub(crate) fn has_text_lines(&self) -> bool {
        self.has_text.load(Ordering::Relaxed)
    }

    /// Called when an invocation has ended: if its process crashed, shows its last lines.
    pub(crate) fn ended(&self, invocation: &Invocation) {
        let has_crashed = matches!(invocation.result, InvocationResult::Exited { .. });
        self.kept().retain(|line| {
            let is_own = line.pid == invocation.pid;
            if is_own && has_crashed {
                self.show(line);
            }
            !is_own
        });
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<OutputLine>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, line: &OutputLine) {
        let (on, off) = if self.dim { ("\u{1b}[2m", "\u{1b}[0m") } else { ("", "") };
        tell(format_args!("{on}[{}] {}{off}", line.pid, line.text));
    }
}
