//! Counts deliveries, effects and acknowledgements, outside the store.
//!
//! A handler under test records each effect, and the simulated source records deliveries and
//! acknowledgements. [`doubled`](Ledger::doubled) and [`lost`](Ledger::lost) then find work that
//! was done twice or never.
//!
//! ```
//! use lambda_idempotency_testkit::ledger::Ledger;
//!
//! let ledger = Ledger::new();
//! ledger.delivered("order-1");
//! ledger.record("order-1", "first attempt");
//! ledger.acknowledged("order-1");
//! ledger.delivered("order-2");
//!
//! ledger.assert_once("order-1");
//! ledger.assert_never("order-2");
//! assert!(ledger.lost().is_empty(), "order-2 is still with its source");
//! assert_eq!(ledger.missing(["order-1", "order-2"]), ["order-2"]);
//! ```

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Counts effects by label. Clones share the counts.
#[derive(Clone, Default)]
pub struct Ledger {
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
}

/// The counts of one label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// How often the source delivered it.
    pub delivered: usize,
    /// The note of each execution, in order.
    pub executions: Vec<String>,
    /// How often it was acknowledged to the source.
    pub acknowledged: usize,
    /// How often the source moved it to the dead-letter queue.
    pub dead_lettered: usize,
}

impl Entry {
    /// Whether it was acknowledged although it was never executed.
    fn is_lost(&self) -> bool {
        self.delivered > 0 && self.acknowledged > 0 && self.executions.is_empty()
    }
}

impl Ledger {
    /// An empty ledger.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records an effect of `label`. `attempt` names the attempt in messages.
    pub fn record(&self, label: impl Into<String>, attempt: impl fmt::Display) {
        let attempt = attempt.to_string();
        self.lock().entry(label.into()).or_default().executions.push(attempt);
    }

    /// Records that the source delivered `label`.
    pub fn delivered(&self, label: impl Into<String>) {
        self.lock().entry(label.into()).or_default().delivered += 1;
    }

    /// Records that `label` was acknowledged, so that the source does not deliver it again.
    pub fn acknowledged(&self, label: impl Into<String>) {
        self.lock().entry(label.into()).or_default().acknowledged += 1;
    }

    /// Records that the source moved `label` to the dead-letter queue.
    pub fn dead_lettered(&self, label: impl Into<String>) {
        self.lock().entry(label.into()).or_default().dead_lettered += 1;
    }

    /// The counts of `label`.
    #[must_use]
    pub fn entry(&self, label: &str) -> Entry {
        self.lock().get(label).cloned().unwrap_or_default()
    }

    /// The number of executions of `label`.
    #[must_use]
    pub fn executed(&self, label: &str) -> usize {
        self.entry(label).executions.len()
    }

    /// The number of executions of all labels.
    #[must_use]
    pub fn total(&self) -> usize {
        self.lock().values().map(|entry| entry.executions.len()).sum()
    }

    /// The labels that were executed more than once.
    #[must_use]
    pub fn doubled(&self) -> Vec<String> {
        self.labels(|entry| entry.executions.len() > 1)
    }

    /// The labels that were delivered and never executed, and that the source does not deliver
    /// again.
    #[must_use]
    pub fn lost(&self) -> Vec<String> {
        self.labels(Entry::is_lost)
    }

    /// The labels that were delivered but neither acknowledged nor moved to the dead-letter queue,
    /// so that the source delivers them again.
    #[must_use]
    pub fn outstanding(&self) -> Vec<String> {
        self.labels(|entry| {
            entry.delivered > 0 && entry.acknowledged == 0 && entry.dead_lettered == 0
        })
    }

    /// Which of `expected` were never executed, in the order given.
    #[must_use]
    pub fn missing<L: Into<String>>(&self, expected: impl IntoIterator<Item = L>) -> Vec<String> {
        expected.into_iter().map(Into::into).filter(|label| self.executed(label) == 0).collect()
    }

    /// Asserts that `label` was executed exactly once.
    ///
    /// # Panics
    /// If it was not.
    #[track_caller]
    pub fn assert_once(&self, label: &str) {
        let executed = self.executed(label);
        assert_eq!(executed, 1, "{label:?} was executed {executed} times, not once\n{self}");
    }

    /// Asserts that `label` was never executed.
    ///
    /// # Panics
    /// If it was.
    #[track_caller]
    pub fn assert_never(&self, label: &str) {
        let executed = self.executed(label);
        assert_eq!(executed, 0, "{label:?} was executed {executed} times, not never\n{self}");
    }

    /// Asserts that each of `expected` was executed exactly once, and nothing else was executed.
    ///
    /// # Panics
    /// If one was not, or if another label was executed.
    #[track_caller]
    pub fn assert_each_once<L: Into<String>>(&self, expected: impl IntoIterator<Item = L>) {
        let expected: Vec<String> = expected.into_iter().map(Into::into).collect();
        for label in &expected {
            self.assert_once(label);
        }
        let total = self.total();
        assert_eq!(total, expected.len(), "something else was executed as well\n{self}");
    }

    /// Asserts that nothing was executed twice and nothing was lost.
    ///
    /// # Panics
    /// If a label was.
    #[track_caller]
    pub fn assert_sound(&self) {
        let (doubled, lost) = (self.doubled(), self.lost());
        assert!(
            doubled.is_empty() && lost.is_empty(),
            "executed twice: {doubled:?}; lost: {lost:?}\n{self}"
        );
    }

    fn labels(&self, which: impl Fn(&Entry) -> bool) -> Vec<String> {
        let entries = self.lock();
        entries.iter().filter(|(_, e)| which(e)).map(|(label, _)| label.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A table: one line a label.
impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.lock();
        let width = entries.keys().map(|label| label.chars().count()).max().unwrap_or(0).max(5);
        write!(f, "{:<width$}  delivered  executed  acknowledged", "label")?;
        for (label, entry) in entries.iter() {
            let Entry { delivered, executions, acknowledged, dead_lettered } = entry;
            let executed = executions.len();
            write!(f, "\n{label:<width$}  {delivered:>9}  {executed:>8}  {acknowledged:>12}")?;
            if executed > 1 {
                write!(f, "  DOUBLED: {}", executions.join(", "))?;
            }
            if entry.is_lost() {
                write!(f, "  LOST")?;
            }
            if *dead_lettered > 0 {
                write!(f, "  DEAD-LETTERED")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.lock().iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_and_lost_are_found() {
        let ledger = Ledger::new();
        for label in ["a", "b", "c", "d"] {
            ledger.delivered(label);
        }
        ledger.dead_lettered("d");
        ledger.record("a", 1);
        ledger.record("a", 2);
        ledger.acknowledged("a");
        ledger.acknowledged("b");
        assert_eq!(ledger.doubled(), ["a"]);
        assert_eq!(ledger.lost(), ["b"]);
        assert_eq!(ledger.outstanding(), ["c"]);
        assert_eq!(ledger.total(), 2);
        assert_eq!(
            ledger.to_string(),
            "label  delivered  executed  acknowledged\n\
             a              1         2             1  DOUBLED: 1, 2\n\
             b              1         0             1  LOST\n\
             c              1         0             0\n\
             d              1         0             0  DEAD-LETTERED"
        );
    }

    #[test]
    #[should_panic(expected = "executed twice: [\"a\"]")]
    fn a_double_is_not_sound() {
        let ledger = Ledger::new();
        ledger.record("a", "first");
        ledger.record("a", "second");
        ledger.assert_sound();
    }

    #[test]
    #[should_panic(expected = "something else")]
    fn an_effect_without_a_delivery_is_found() {
        let ledger = Ledger::new();
        ledger.record("a", "first");
        ledger.record("b", "first");
        ledger.assert_each_once(["a"]);
    }
}
