//! What happened, put together from three witnesses: the ledger, the invocations, the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lambda_idempotency_local::{Disposition, Invocation, InvocationResult, Outcome};

use crate::{
    ledger::{Line, Step},
    schedule,
};

/// Everything that happened, in the order in which it was seen.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) invocations: Vec<Ended>,
    pub(crate) orders: BTreeMap<usize, OrderHistory>,
    /// The first final disposition of each message.
    pub(crate) settled: HashMap<String, Disposition>,
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    pub(crate) deliveries: u64,
    pub(crate) returned: u64,
    /// What no run may show, as it was seen.
    pub(crate) offences: Vec<(Offence, String)>,
    /// The attempts of each process whose invocation has not ended.
    open: HashMap<u32, Vec<usize>>,
    /// Processes that run on after their invocation has ended.
    strays: HashMap<u32, usize>,
    /// Counts lines and ends: what has a higher number was seen, and was done, later.
    now: u64,
}

/// An execution of a handler.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) order: usize,
    pub(crate) message: String,
    pub(crate) pid: u32,
    pub(crate) fence: u64,
    pub(crate) started: u64,
    pub(crate) effects: Vec<u64>,
    pub(crate) invocation: Option<usize>,
}

/// An invocation that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// Its process was stopped by us meanwhile.
    pub(crate) stopped: bool,
    /// It took longer than it may.
    pub(crate) overran: bool,
    /// What the function told, by message.
    pub(crate) told: HashMap<String, Outcome>,
}

/// How an invocation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    /// Its process was killed, by us.
    Killed,
    /// It missed its deadline.
    TimedOut,
    /// Its process ended by itself.
    Crashed,
}

#[derive(Debug, Default)]
pub(crate) struct OrderHistory {
    pub(crate) attempts: Vec<usize>,
    pub(crate) effects: u64,
    /// The hashes that its key was told to have.
    pub(crate) hashes: BTreeSet<String>,
    /// The first completion that was known.
    pub(crate) completed: Option<Completion>,
}

/// A completion: when it was known, and the fence of the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) known: u64,
    pub(crate) fence: u64,
}

/// What no run may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Offence {
    /// A message was acknowledged though its order had not been placed, or had failed permanently.
    Lost,
    /// A message that nobody finishes, or a key that is still held.
    Stuck,
    /// An order was placed again without any cause that is admitted.
    Doubled,
    /// A handler started for a key that was completed.
    RanAgain,
    /// A message was dead-lettered, and not because its order fails permanently.
    DeadLettered,
    /// The store disagrees with what happened.
    Store,
    /// Two executions were given the same fence.
    Fence,
    /// A process ended by itself, or failed as a whole.
    Crashed,
    /// The ledger makes no sense.
    Ledger,
}

impl History {
    /// Takes note of a line of the ledger. Returns its order, and whether it is the first of its
    /// kind for that order.
    pub(crate) fn line(&mut self, line: &Line) -> Option<(usize, bool)> {
        self.now += 1;
        let Some(order) = schedule::number(&line.order) else {
            self.offend(Offence::Ledger, format!("an unknown order: {line:?}"));
            return None;
        };
        match line.step {
            Step::Start => Some((order, self.start(order, line))),
            Step::Effect => self.effect(order, line),
        }
    }

    fn start(&mut self, order: usize, line: &Line) -> bool {
        let invocation = self.strays.get(&line.pid).copied();
        self.attempts.push(Attempt {
            order,
            message: line.message.clone(),
            pid: line.pid,
            fence: line.fence,
            started: self.now,
            effects: Vec::new(),
            invocation,
        });
        let attempt = self.attempts.len() - 1;
        self.open.entry(line.pid).or_default().push(attempt);
        let history = self.orders.entry(order).or_default();
        history.attempts.push(attempt);
        history.attempts.len() == 1
    }

    fn effect(&mut self, order: usize, line: &Line) -> Option<(usize, bool)> {
        let mine = |attempt: &&mut Attempt| {
            attempt.order == order && attempt.message == line.message && attempt.pid == line.pid
        };
        let Some(attempt) = self.attempts.iter_mut().rev().find(mine) else {
            self.offend(Offence::Ledger, format!("an effect without a start: {line:?}"));
            return None;
        };
        attempt.effects.push(self.now);
        let history = self.orders.entry(order).or_default();
        history.effects += 1;
        Some((order, history.effects == 1))
    }

    /// Takes note of an invocation that is over. Every line that its process wrote before has to
    /// have been noted.
    pub(crate) fn ended(
        &mut self,
        invocation: &Invocation,
        end: End,
        stopped: bool,
        overran: bool,
    ) {
        self.now += 1;
        let pid = invocation.pid;
        match (&end, &invocation.result) {
            (End::Crashed, result) => self.offend(Offence::Crashed, format!("{pid}: {result}")),
            // An outage that returns every record fails the invocation, so that the pollers slow down.
            (End::Answered, InvocationResult::FunctionError { kind, .. })
                if kind == "Idempotency.RecordsReturned" => {}
            (End::Answered, InvocationResult::Response(_)) => {}
            (End::Answered, result) => self.offend(Offence::Crashed, format!("{pid}: {result}")),
            _ => {}
        }
        let index = self.invocations.len();
        let mut fences = HashMap::new();
        for attempt in self.open.remove(&pid).unwrap_or_default() {
            if let Some(attempt) = self.attempts.get_mut(attempt) {
                attempt.invocation.get_or_insert(index);
                fences.insert(attempt.message.clone(), attempt.fence);
            }
        }
        if end == End::TimedOut {
            self.strays.insert(pid, index);
        } else {
            self.strays.remove(&pid);
        }
        for line in &invocation.records {
            let Some(order) = order_of(&line.record) else { continue };
            let history = self.orders.entry(order).or_default();
            history.hashes.extend(line.key_hash.clone());
            if let (Outcome::Executed, Some(fence)) = (&line.outcome, fences.get(&line.record)) {
                let completion = Completion { known: self.now, fence: *fence };
                history.completed.get_or_insert(completion);
            }
        }
        let told = invocation.records.iter();
        let told = told.map(|line| (line.record.clone(), line.outcome.clone())).collect();
        self.invocations.push(Ended { end, stopped, overran, told });
    }

    /// Takes note of what the queue did with a message of the invocation that ended last.
    pub(crate) fn delivered(&mut self, message: &str, doomed: bool, disposition: Disposition) {
        self.deliveries += 1;
        let Some(invocation) = self.invocations.last() else { return };
        let outcome = match (invocation.told.get(message), &invocation.end) {
            (Some(outcome), _) => outcome.clone(),
            (None, End::TimedOut) => Outcome::TimedOut,
            (None, End::Answered) => Outcome::Refused,
            (None, _) => Outcome::Crashed,
        };
        *self.outcomes.entry(outcome).or_default() += 1;
        if disposition == Disposition::Returned {
            self.returned += 1;
        } else if !self.settled.contains_key(message) {
            self.settled.insert(message.to_owned(), disposition);
            self.settle(message, doomed, disposition);
        }
    }

    fn settle(&mut self, message: &str, doomed: bool, disposition: Disposition) {
        let placed = order_of(message)
            .and_then(|order| self.orders.get(&order))
            .is_some_and(|order| order.effects > 0);
        match (disposition, doomed) {
            (Disposition::Done, true) => {
                self.offend(Offence::Lost, format!("{message}: done, though it fails permanently"));
            }
            (Disposition::Done, false) if !placed => {
                self.offend(Offence::Lost, format!("{message}: done, and its order is not placed"));
            }
            (Disposition::DeadLettered, false) => {
                self.offend(Offence::DeadLettered, format!("{message}: dead-lettered"));
            }
            _ => {}
        }
    }

    /// A process that ran on is gone.
    pub(crate) fn gone(&mut self, pid: u32) {
        self.strays.remove(&pid);
    }

    pub(crate) fn offend(&mut self, offence: Offence, what: String) {
        self.offences.push((offence, what));
    }
}

/// The order of the message `m-17-2` or `p-17`.
pub(crate) fn order_of(message: &str) -> Option<usize> {
    message.split('-').nth(1)?.parse().ok()
}
