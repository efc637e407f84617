//! Metrics for CloudWatch, written to the log in its embedded metric format.
//!
//! [`CloudWatchMetrics`] is an observer. It writes a line of JSON to the standard output at the end of each
//! invocation, for each operation and source, and CloudWatch Logs makes metrics of it: no request, no permission, no
//! agent. [The guide](crate::guide::metrics) lists the metrics.

mod document;
mod sums;

use std::{
    collections::BTreeMap,
    fmt,
    io::{Write as _, stdout},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lambda_idempotency_engine::observe::{BatchEnd, Observer, Report, StoreCall};

use self::{document::documents, sums::Sums};
use crate::error::ConfigError;

/// How many operations have metrics of their own. CloudWatch charges for each metric of each dimension, and a program
/// may make names from its data.
const MOST_OPERATIONS: usize = 100;

/// The operation whose metrics are those of all others.
const OTHERS: &str = "others";

/// Writes metrics in CloudWatch's embedded metric format.
///
/// ```
/// use lambda_idempotency::{ConfigError, Idempotency, MemoryStore, observe::CloudWatchMetrics};
///
/// # fn main() -> Result<(), ConfigError> {
/// let idempotency = Idempotency::new(MemoryStore::new())
///     .with_observer(CloudWatchMetrics::new("Shop")?);
/// # let _ = idempotency;
/// # Ok(())
/// # }
/// ```
///
/// It has the metrics of the first 100 operations that it sees; all others are counted as the operation `others`.
pub struct CloudWatchMetrics {
    namespace: Arc<str>,
    output: Box<Output>,
    state: Mutex<State>,
}

type Output = dyn Fn(&str) + Send + Sync;

#[derive(Default)]
struct State {
    operations: Vec<Arc<str>>,
    /// By operation and source, since their last line.
    sums: BTreeMap<(Arc<str>, &'static str), Sums>,
}

impl CloudWatchMetrics {
    /// Metrics in this namespace of CloudWatch: 1 to 255 characters, letters, digits, spaces and
    /// `.-_/#:`, not only spaces, and not beginning with `:` or `AWS/`. Use one for each stage, since the
    /// dimensions are the operation and the source only.
    ///
    /// # Errors
    /// Any other text: [`ConfigError::Setting`].
    pub fn new(namespace: &str) -> Result<Self, ConfigError> {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || " .-_/#:".contains(char);
        let is_valid = (1..=255).contains(&namespace.len())
            && namespace.chars().all(is_allowed)
            && !namespace.trim().is_empty()
            && !namespace.starts_with(':')
            && !namespace.starts_with("AWS/");
        if !is_valid {
            return Err(ConfigError::setting(format!(
                "{namespace:?} cannot be a namespace of metrics; CloudWatch allows 1 to 255 letters, digits, spaces and \
                 `.-_/#:`, but not only spaces, and no `:` or `AWS/` at the beginning"
            )));
        }
        Ok(Self { namespace: namespace.into(), output: Box::new(print), state: Mutex::default() })
    }

    /// Gives each line, without a line break, to `output` in place of the standard output.
    #[must_use]
    pub fn with_output(mut self, output: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.output = Box::new(output);
        self
    }

    // A panic cannot leave the sums half-changed, so a poisoned lock is still sound.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn operation(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.operations.iter().find(|known| &***known == name) {
            return Arc::clone(known);
        }
        if self.operations.len() == MOST_OPERATIONS {
            return OTHERS.into();
        }
        let name: Arc<str> = name.into();
        self.operations.push(Arc::clone(&name));
        name
    }

    fn sums(&mut self, operation: &str, source: &'static str) -> &mut Sums {
        let operation = self.operation(operation);
        self.sums.entry((operation, source)).or_default()
    }
}

/// Writes a line with one call, so that no other line gets into it. An error is ignored: no record
/// fails because its metrics could not be written.
fn print(line: &str) {
    let mut line = line.to_owned();
    line.push('\n');
    let _ = stdout().lock().write_all(line.as_bytes());
}

impl Observer for CloudWatchMetrics {
    fn reported(&self, report: &Report<'_>) {
        self.lock().sums(report.operation, report.record.source).report(report);
    }

    fn store_called(&self, call: &StoreCall<'_>) {
        self.lock().sums(call.operation, call.source).store_call(call);
    }

    fn batch_ended(&self, end: &BatchEnd<'_>) {
        let mut state = self.lock();
        state.sums(end.operation, end.source).end(end);
        let operation = state.operation(end.operation);
        let sums = state.sums.remove(&(Arc::clone(&operation), end.source)).unwrap_or_default();
        drop(state);
        for line in documents(&self.namespace, (&operation, end.source), end.at, sums) {
            (self.output)(&line);
        }
    }
}

impl fmt::Debug for CloudWatchMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloudWatchMetrics")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}
