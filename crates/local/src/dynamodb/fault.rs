//! Faults of DynamoDB that tests inject: into which requests, how often, and what goes wrong.
//!
//! The most important faults come *after* the write was applied: the caller sees a failure, but the table
//! holds the write. Every fault has a parameter [`Apply`] for that reason.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// Whether the request reaches the table before it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// The write was not applied.
    Before,
    /// The write was applied, and the caller does not get the answer.
    After,
}

/// Something that goes wrong with certain requests.
///
/// ```
/// # use lambda_idempotency_local::{Apply, Fault};
/// // The second PutItem into `idempotency` is applied, and its answer is lost.
/// let fault = Fault::hang_up(Apply::After).on("PutItem").table("idempotency").skip(1).times(1);
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    operation: Option<String>,
    table: Option<String>,
    skip: u64,
    times: u64,
    pub(crate) action: Action,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Error { apply: Apply, status: u16, code: String },
    HangUp { apply: Apply },
    Delay(Duration),
    Hold { apply: Apply, gate: Gate },
    ThrottleMembers(Vec<usize>),
    Cancel { member: usize, code: String },
}

impl Fault {
    /// Answers with an HTTP status and an error code, such as `InternalServerError`.
    pub fn error(apply: Apply, status: u16, code: impl Into<String>) -> Self {
        Self::new(Action::Error { apply, status, code: code.into() })
    }

    /// Answers 500, `InternalServerError`.
    pub fn internal_error(apply: Apply) -> Self {
        Self::error(apply, 500, "InternalServerError")
    }

    /// Answers 503, `ServiceUnavailable`, before anything is applied.
    pub fn unavailable() -> Self {
        Self::error(Apply::Before, 503, "ServiceUnavailable")
    }

    /// Answers 400, `ProvisionedThroughputExceededException`, before anything is applied.
    pub fn throttled() -> Self {
        Self::error(Apply::Before, 400, "ProvisionedThroughputExceededException")
    }

    /// Closes the connection without an answer.
    pub fn hang_up(apply: Apply) -> Self {
        Self::new(Action::HangUp { apply })
    }

    /// Waits for this long, then carries the request out.
    pub fn delay(delay: Duration) -> Self {
        Self::new(Action::Delay(delay))
    }

    /// Holds the request until the [`Gate`] is opened, so that a test can kill a process at an exact moment.
    pub fn hold(apply: Apply, gate: &Gate) -> Self {
        Self::new(Action::Hold { apply, gate: gate.clone() })
    }

    /// Throttles the members of a `BatchExecuteStatement` at these positions; the other members are applied.
    pub fn throttle_members(members: impl IntoIterator<Item = usize>) -> Self {
        Self::new(Action::ThrottleMembers(members.into_iter().collect()))
            .on("BatchExecuteStatement")
    }

    /// Cancels a `TransactWriteItems` before anything is applied: its member at this position, or its last one, is the
    /// reason, with a code such as `TransactionConflict` or `ThrottlingError`.
    pub fn cancel_transaction(member: usize, code: impl Into<String>) -> Self {
        Self::new(Action::Cancel { member, code: code.into() }).on("TransactWriteItems")
    }

    fn new(action: Action) -> Self {
        Self { operation: None, table: None, skip: 0, times: u64::MAX, action }
    }

    /// Only for this operation.
    #[must_use]
    pub fn on(mut self, operation: impl Into<String>) -> Self {
        self.operation = Some(operation.into());
        self
    }

    /// Only for requests that touch this table.
    #[must_use]
    pub fn table(mut self, table: impl Into<String>) -> Self {
        self.table = Some(table.into());
        self
    }

    /// Leaves the first `count` matching requests alone.
    #[must_use]
    pub fn skip(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Injects the fault into this many requests. Default: into every matching request.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    fn concerns<'a>(&self, operation: &str, mut tables: impl Iterator<Item = &'a String>) -> bool {
        self.operation.as_ref().is_none_or(|wanted| wanted == operation)
            && self.table.as_ref().is_none_or(|wanted| tables.any(|table| table == wanted))
    }
}

/// Names a fault that was added, to remove it or to ask how often it was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultId(pub(crate) usize);

/// The active faults. Clones share the list.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Arc<Mutex<Vec<Rule>>>,
}

#[derive(Debug)]
struct Rule {
    fault: Option<Fault>,
    seen: u64,
    injected: u64,
}

impl Faults {
    /// Activates a fault, after those that are active. A request gets the first fault that applies to it.
    pub fn add(&self, fault: Fault) -> FaultId {
        let mut rules = self.rules();
        rules.push(Rule { fault: Some(fault), seen: 0, injected: 0 });
        FaultId(rules.len() - 1)
    }

    /// Deactivates a fault.
    pub fn remove(&self, id: FaultId) {
        if let Some(rule) = self.rules().get_mut(id.0) {
            rule.fault = None;
        }
    }

    /// Deactivates every fault.
    pub fn clear(&self) {
        for rule in self.rules().iter_mut() {
            rule.fault = None;
        }
    }

    /// Into how many requests a fault was injected.
    pub fn injected(&self, id: FaultId) -> u64 {
        self.rules().get(id.0).map_or(0, |rule| rule.injected)
    }

    pub(crate) fn inject<'a>(
        &self,
        operation: &str,
        tables: impl Iterator<Item = &'a String> + Clone,
    ) -> Option<Action> {
        for rule in self.rules().iter_mut() {
            let Some(fault) =
                rule.fault.as_ref().filter(|fault| fault.concerns(operation, tables.clone()))
            else {
                continue;
            };
            rule.seen += 1;
            if rule.seen > fault.skip && rule.injected < fault.times {
                rule.injected += 1;
                let (action, times) = (fault.action.clone(), fault.times);
                if rule.injected == times {
                    rule.fault = None; // used up
                }
                return Some(action);
            }
        }
        None
    }

    fn rules(&self) -> MutexGuard<'_, Vec<Rule>> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds requests until it is opened. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    waiting: Arc<watch::Sender<u64>>,
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self { waiting: Arc::new(watch::Sender::new(0)), open: Arc::new(watch::Sender::new(false)) }
    }

    /// Waits until the gate holds a request.
    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Waits until this many requests have reached the gate.
    pub async fn reached_by(&self, requests: u64) {
        // The sender lives in `self`, so this cannot fail.
        let _ = self.waiting.subscribe().wait_for(|count| *count >= requests).await;
    }

    /// Lets all held requests and all later ones continue.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) async fn pass(&self) {
        self.waiting.send_modify(|count| *count += 1);
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injects(faults: &Faults, operation: &str, table: &str) -> bool {
        faults.inject(operation, [table.to_owned()].iter()).is_some()
    }

    #[test]
    fn a_fault_is_injected_into_matching_requests_as_often_as_set() {
        let faults = Faults::default();
        let id = faults.add(Fault::unavailable().on("PutItem").table("a").skip(1).times(2));
        assert!(!injects(&faults, "GetItem", "a"));
        assert!(!injects(&faults, "PutItem", "b"));
        let injected: Vec<bool> = (0..4).map(|_| injects(&faults, "PutItem", "a")).collect();
        assert_eq!(injected, [false, true, true, false]);
        assert_eq!(faults.injected(id), 2);
    }

    #[test]
    fn a_removed_fault_is_not_injected() {
        let faults = Faults::default();
        let id = faults.add(Fault::unavailable());
        assert!(injects(&faults, "PutItem", "a"));
        faults.remove(id);
        assert!(!injects(&faults, "PutItem", "a"));
    }
}
