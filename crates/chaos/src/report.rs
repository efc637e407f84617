//! The result of a run.

use std::{collections::BTreeMap, fmt};

use lambda_idempotency_local::Outcome;
use serde::Serialize;

use crate::{
    findings::Findings,
    kinds::{FaultKind, Mode, Origin},
};

/// The result of a run.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The digest of the schedule, in hexadecimal digits: the same for the same settings.
    pub schedule: String,
    /// Processes at a time.
    pub processes: usize,
    /// How effects and completions were kept together.
    pub mode: Mode,
    /// The service that delivered the messages.
    pub source: Origin,
    /// The kinds of faults that were enabled.
    pub faults: Vec<FaultKind>,
    /// Messages sent.
    pub messages: usize,
    /// Messages sent once more at the end, for keys that were still held.
    pub probes: usize,
    /// Distinct keys among them.
    pub keys: usize,
    /// Deliveries: each message once, and again each time it was returned.
    pub deliveries: u64,
    /// Invocations.
    pub invocations: usize,
    /// Deliveries by the outcome that the function logged or, without one, by how the invocation ended.
    pub outcomes: BTreeMap<String, u64>,
    /// Messages acknowledged.
    pub acknowledged: usize,
    /// Messages dead-lettered.
    pub dead_lettered: usize,
    /// Deliveries that were returned to their source.
    pub returned: u64,
    /// Messages neither acknowledged nor dead-lettered at the end.
    pub left: usize,
    /// Whether the run ended because no message was acknowledged or dead-lettered for [`Settings::patience`](crate::Settings::patience): it is unfinished then.
    pub given_up: bool,
    /// Handlers started.
    pub executions: usize,
    /// The findings of the audit.
    #[serde(flatten)]
    pub findings: Findings,
    /// How often each fault was injected: processes signalled, deadlines missed, requests changed.
    pub injected: BTreeMap<FaultKind, u64>,
    /// Requests to the store, as they came through its proxy.
    pub requests: u64,
    /// Write units that these requests consumed, in DynamoDB.
    pub write_units: f64,
    /// How long the run took, in seconds.
    pub seconds: f64,
}

impl Report {
    /// Deliveries with this outcome.
    #[must_use]
    pub fn outcome(&self, outcome: &Outcome) -> u64 {
        self.outcomes.get(outcome.as_str()).copied().unwrap_or_default()
    }
}

/// As JSON.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?;
        f.write_str(&json)
    }
}
