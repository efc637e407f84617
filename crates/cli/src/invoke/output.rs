//! The function's output: shown with `-v`; otherwise the last lines are kept, to show them after a crash.

use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};

use lambda_idempotency_local::{Invocation, InvocationResult, OutputLine};

use crate::progress::Progress;

/// How many lines to keep for a crash.
const KEPT: usize = 50;

pub(crate) struct Output {
    verbose: bool,
    dim: bool,
    kept: Mutex<VecDeque<OutputLine>>,
    progress: Arc<Progress>,
}

impl Output {
    pub(crate) fn new(verbose: bool, progress: Arc<Progress>) -> Self {
        let dim = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { verbose, dim, kept: Mutex::default(), progress }
    }

    /// Handles a line that a process wrote.
    pub(crate) fn take(&self, line: OutputLine) {
        if self.verbose {
            return self.show(&line);
        }
        if line.is_record {
            return; // the table shows it
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
    }

    /// Called when an invocation has ended: if its process crashed, shows its last lines.
    pub(crate) fn ended(&self, invocation: &Invocation) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let (own, others) =
            kept.into_iter().partition::<VecDeque<_>, _>(|line| line.pid == invocation.pid);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).extend(others);
        if matches!(invocation.result, InvocationResult::Exited { .. }) {
            own.iter().for_each(|line| self.show(line));
        }
    }

    /// Shows the last lines of a function that did not start.
    pub(crate) fn last_words(&self) {
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        kept.iter().for_each(|line| self.show(line));
    }

    fn show(&self, line: &OutputLine) {
        let (on, off) = if self.dim { ("\u{1b}[2m", "\u{1b}[0m") } else { ("", "") };
        self.progress.suspend(|| eprintln!("{on}[{}] {}{off}", line.pid, line.text));
    }
}
