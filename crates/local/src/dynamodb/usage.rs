//! Counts requests to DynamoDB, and the capacity units that AWS would have counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

/// A count of requests and capacity units.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Requests by operation, those that a [`Fault`](crate::Fault) answered included.
    pub operations: BTreeMap<String, u64>,
    /// Requests by IAM action that they need, without the `dynamodb:` before it: `PutItem`, `PartiQLInsert`, ...
    pub actions: BTreeMap<String, u64>,
    /// Read units consumed.
    pub read_units: f64,
    /// Write units consumed, as DynamoDB reported them.
    pub write_units: f64,
    /// Conditional writes refused. DynamoDB bills each with at least one write unit. Conditions of a
    /// batch are among the `write_units`; a single write that is refused reports none.
    pub refused_conditions: u64,
    /// Faults injected.
    pub faults: u64,
}

impl Usage {
    /// All requests.
    pub fn requests(&self) -> u64 {
        self.operations.values().sum()
    }

    /// Requests of one operation.
    pub fn count(&self, operation: &str) -> u64 {
        self.operations.get(operation).copied().unwrap_or_default()
    }

    /// The difference to `earlier`, which must be an earlier snapshot of the same count.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |later: &BTreeMap<String, u64>, earlier: &BTreeMap<String, u64>| {
            let before = |name: &String| earlier.get(name).copied().unwrap_or_default();
            let since = later
                .iter()
                .map(|(name, count)| (name.clone(), count.saturating_sub(before(name))));
            since.filter(|(_, count)| *count > 0).collect()
        };
        Self {
            operations: difference(&self.operations, &earlier.operations),
            actions: difference(&self.actions, &earlier.actions),
            read_units: self.read_units - earlier.read_units,
            write_units: self.write_units - earlier.write_units,
            refused_conditions: self.refused_conditions.saturating_sub(earlier.refused_conditions),
            faults: self.faults.saturating_sub(earlier.faults),
        }
    }

    /// Adds another count to this one.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in
            [(&mut self.operations, &other.operations), (&mut self.actions, &other.actions)]
        {
            for (name, count) in theirs {
                *mine.entry(name.clone()).or_default() += count;
            }
        }
        self.read_units += other.read_units;
        self.write_units += other.write_units;
        self.refused_conditions += other.refused_conditions;
        self.faults += other.faults;
    }
}

/// A running count.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<Usage>);

impl Ledger {
    pub(crate) fn snapshot(&self) -> Usage {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn enter(&self, usage: &Usage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(usage);
    }
}
