//! Metrics for CloudWatch, written to the log in its embedded metric format.
//!
//! [`CloudWatchMetrics`] is an observer. It writes a line of JSON to the standard output at the end of each
//! invocation, for each operation and source, and CloudWatch Logs makes metrics of it: no request, no permission, no
//! agent. [The guide](crate::guide::metrics) lists the metrics, and CloudWatch documents [the format].
//!
//! [the format]: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html

use std::{
    collections::BTreeMap,
    fmt,
    io::{Write as _, stdout},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use lambda_idempotency_core::{clock::Timestamp, outcome::Outcome, store::StoreErrorKind};
use lambda_idempotency_engine::observe::{BatchEnd, Observer, Report, StoreCall, StorePurpose};
use serde_json::{Map, Value, json};

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
    state: Mutex<Counted>,
}

type Output = dyn Fn(&str) + Send + Sync;

#[derive(Default)]
struct Counted {
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
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
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

/// The most values of a metric in a document.
const MOST_VALUES: usize = 100;

/// The longest value of a dimension.
const LONGEST_DIMENSION: usize = 1024;

/// The documents of these sums, each in a line. Mostly one: more values of a metric than a document holds are in
/// further ones.
fn documents(
    namespace: &str,
    (operation, source): (&str, &str),
    at: Timestamp,
    mut sums: Sums,
) -> Vec<String> {
    let mut documents = Vec::new();
    while !(sums.counts.is_empty() && sums.times.is_empty()) {
        let mut values = Map::new();
        let mut metrics = Vec::new();
        for (name, count) in mem::take(&mut sums.counts) {
            metrics.push(json!({ "Name": name, "Unit": "Count" }));
            values.insert(name.to_owned(), json!(count));
        }
        for (name, times) in &mut sums.times {
            let rest = times.split_off(times.len().min(MOST_VALUES));
            metrics.push(json!({ "Name": name, "Unit": "Milliseconds" }));
            values.insert((*name).to_owned(), json!(mem::replace(times, rest)));
        }
        sums.times.retain(|_, times| !times.is_empty());
        values.insert("operation".to_owned(), dimension(operation).into());
        values.insert("source".to_owned(), dimension(source).into());
        let directive = json!({
            "Namespace": namespace,
            "Dimensions": [["operation", "source"]],
            "Metrics": metrics,
        });
        let about = json!({ "Timestamp": at.as_millis(), "CloudWatchMetrics": [directive] });
        values.insert("_aws".to_owned(), about);
        documents.push(Value::Object(values).to_string());
    }
    documents
}

/// CloudWatch allows visible ASCII characters and spaces in a dimension, and drops metrics with others.
fn dimension(name: &str) -> String {
    let visible = |char: char| if matches!(char, ' '..='~') { char } else { '?' };
    let name: String = name.chars().take(LONGEST_DIMENSION).map(visible).collect();
    match name.strip_prefix(':') {
        Some(rest) => format!("?{rest}"),
        None if name.trim().is_empty() => "?".to_owned(),
        None => name,
    }
}

/// The names of the metrics are a stable contract: the guide lists them.
#[derive(Debug, Default)]
struct Sums {
    counts: BTreeMap<&'static str, f64>,
    /// In milliseconds.
    times: BTreeMap<&'static str, Vec<f64>>,
}

impl Sums {
    fn report(&mut self, report: &Report<'_>) {
        self.count(report.outcome.label(), 1);
        self.count("permanent_failures", usize::from(is_new_permanent_failure(report)));
        let follows_a_loss = report.lost_attempts > 0 && report.ran_for.is_some();
        self.count("lost_attempts", usize::from(follows_a_loss));
        self.time("wait_time", report.waited);
        self.time("handler_time", report.ran_for);
        self.time("settle_time", report.settled_in);
    }

    fn store_call(&mut self, call: &StoreCall<'_>) {
        self.count("store_calls", 1);
        self.count("store_errors", call.errors.len());
        let throttled = call.errors.iter().filter(|kind| **kind == StoreErrorKind::Throttled);
        self.count("store_throttled", throttled.count());
        let name = match call.purpose {
            StorePurpose::Look => "look_call_time",
            StorePurpose::Claim => "claim_call_time",
            StorePurpose::Settle => "settle_call_time",
            StorePurpose::Renew => "renew_call_time",
            _ => return,
        };
        self.time(name, Some(call.took));
    }

    fn end(&mut self, end: &BatchEnd<'_>) {
        self.count("records", end.records);
        self.count("cache_hits", end.cache_hits);
        self.time("batch_time", Some(end.took));
    }

    /// A count of 0 is not written: CloudWatch charges for each metric.
    fn count(&mut self, name: &'static str, more: usize) {
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let more = more as f64;
        if more > 0.0 {
            *self.counts.entry(name).or_default() += more;
        }
    }

    fn time(&mut self, name: &'static str, took: Option<Duration>) {
        if let Some(took) = took {
            // A thousandth of a millisecond is enough, and keeps the lines short.
            let millis = (took.as_secs_f64() * 1e6).round() / 1e3;
            self.times.entry(name).or_default().push(millis);
        }
    }
}

/// Whether this delivery made the failure permanent, as opposed to a copy of it, and to one that
/// met an earlier permanent failure.
fn is_new_permanent_failure(report: &Report<'_>) -> bool {
    let is_permanent = matches!(
        report.outcome,
        Outcome::Failed { permanent: true, .. } | Outcome::TimedOut { permanent: true }
    );
    is_permanent && report.ran_for.is_some()
}

#[cfg(test)]
mod tests {
    use super::dimension;

    #[test]
    fn a_dimension_is_what_cloudwatch_takes() {
        assert_eq!(dimension("place-order"), "place-order");
        assert_eq!(dimension(":gr\u{f6}\u{df}e\n"), "?gr??e?");
        assert_eq!((dimension(" "), dimension("")), ("?".to_owned(), "?".to_owned()));
        assert_eq!(dimension(&"x".repeat(2000)).len(), 1024);
    }
}
