//! The course of a run, from three sources: the ledger, the invocations and the queue.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lambda_idempotency_local::{Disposition, Invocation, InvocationResult, Outcome, RecordLine};

use crate::{
    error::Error,
    ledger::{Line, Step},
    schedule::{self, order_of},
};

/// Everything that happened, in the order in which it was seen.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) invocations: Vec<Ended>,
    pub(crate) orders: BTreeMap<usize, OrderHistory>,
    /// The first final disposition of each message.
    pub(crate) dispositions: HashMap<String, Disposition>,
    pub(crate) outcomes: BTreeMap<Outcome, u64>,
    pub(crate) deliveries: u64,
    pub(crate) returned: u64,
    /// Why the last record was not processed.
    problem: Option<String>,
    /// Violations, in the order in which they were found.
    pub(crate) offences: Vec<(Offence, String)>,
    /// The attempts of each process whose invocation has not ended.
    open: HashMap<u32, Vec<usize>>,
    /// The last invocation of each process that gets no other: it has ended, or it runs on. Its lines that are seen after
    /// that invocation is of that invocation.
    last: HashMap<u32, usize>,
    /// Counts ledger lines and ends of invocations: a higher number happened later.
    now: u64,
}

impl History {
    /// Adds a line of the ledger. Returns its order, and whether it is the first of its
    /// kind for that order.
    pub(crate) fn line(&mut self, line: &Line) -> Option<(usize, bool)> {
        self.now += 1;
        let Some(order) = schedule::number(&line.order) else {
            self.offend(Offence::Ledger, format!("an unknown order: {line:?}"));
            return None;
        };
        match line.step {
            Step::Start => Some((order, self.start(order, line))),
            Step::Effect | Step::Collected | Step::Kept => self.done(order, line),
        }
    }

    /// Adds an effect of a function that does not say when its handlers start: its first effect starts them.
    pub(crate) fn effect_alone(&mut self, line: &Line) -> Option<(usize, bool)> {
        let is_open = self.attempts.iter().rev().any(|attempt| {
            let same = attempt.message == line.message && attempt.pid == line.pid;
            same && attempt.fence == line.fence
                && attempt.invocation == self.last.get(&line.pid).copied()
        });
        if !is_open {
            self.line(&Line { step: Step::Start, ..line.clone() })?;
        }
        self.line(line)
    }

    fn start(&mut self, order: usize, line: &Line) -> bool {
        let invocation = self.last.get(&line.pid).copied();
        self.attempts.push(Attempt {
            order,
            message: line.message.clone(),
            pid: line.pid,
            fence: line.fence,
            started: self.now,
            effects: Vec::new(),
            collected: false,
            kept: None,
            invocation,
        });
        let attempt = self.attempts.len() - 1;
        self.open.entry(line.pid).or_default().push(attempt);
        let history = self.orders.entry(order).or_default();
        history.attempts.push(attempt);
        history.attempts.len() == 1
    }

    /// Adds what an attempt has done. Returns whether it is the first of its kind for the order.
    fn done(&mut self, order: usize, line: &Line) -> Option<(usize, bool)> {
        let now = self.now;
        let Some(attempt) = self.attempt_of(order, line) else {
            self.offend(Offence::Ledger, format!("{:?} without a start: {line:?}", line.step));
            return None;
        };
        match line.step {
            Step::Collected => attempt.collected = true,
            Step::Kept => attempt.kept = Some(now),
            _ => {
                attempt.effects.push(Effect { at: now, name: line.name.clone() });
            }
        }
        let history = self.orders.entry(order).or_default();
        history.effects += u64::from(line.step == Step::Effect);
        let is_first = history.steps.insert(line.step);
        Some((order, is_first))
    }

    /// The attempts of an order, in the order in which they started.
    pub(crate) fn attempts_of<'h>(
        &'h self,
        order: &'h OrderHistory,
    ) -> impl Iterator<Item = &'h Attempt> {
        order.attempts.iter().filter_map(|index| self.attempts.get(*index))
    }

    /// The last attempt of this process with the line's message.
    fn attempt_of(&mut self, order: usize, line: &Line) -> Option<&mut Attempt> {
        self.attempts.iter_mut().rev().find(|attempt| {
            attempt.order == order && attempt.message == line.message && attempt.pid == line.pid
        })
    }

    /// Adds an effect that the table of a transaction's effects has at the end. When it happened is not known.
    pub(crate) fn committed(&mut self, line: &Line) {
        let own = |attempt: &Attempt| {
            schedule::id(attempt.order) == line.order
                && (&attempt.message, attempt.pid, attempt.fence)
                    == (&line.message, line.pid, line.fence)
        };
        // The attempts of an order are few, and those of a long run many.
        let order = schedule::number(&line.order).and_then(|order| self.orders.get(&order));
        let indices = order.map(|order| order.attempts.clone()).unwrap_or_default();
        let found = indices.into_iter().find(|index| self.attempts.get(*index).is_some_and(own));
        let Some(attempt) = found.and_then(|index| self.attempts.get_mut(index)) else {
            return self.offend(Offence::Ledger, format!("an effect without a start: {line:?}"));
        };
        attempt.effects.push(Effect { at: self.now, name: line.name.clone() });
        self.orders.entry(attempt.order).or_default().effects += 1;
    }

    /// Notes how often the table says that an order was placed. Once is enough to acknowledge its messages.
    pub(crate) fn placed(&mut self, order: usize, times: u64) {
        self.orders.entry(order).or_default().placed = times;
    }

    pub(crate) fn is_placed(&self, order: usize) -> bool {
        self.orders.get(&order).is_some_and(|order| order.effects > 0 || order.placed > 0)
    }

    /// Adds what the queue did with a message of the invocation that ended last.
    pub(crate) fn delivered(&mut self, message: &str, doomed: bool, disposition: Disposition) {
        self.deliveries += 1;
        let Some(invocation) = self.invocations.last() else { return };
        let outcome = match (invocation.logged.get(message), &invocation.end) {
            (Some(outcome), _) => outcome.clone(),
            (None, End::TimedOut) => Outcome::TimedOut,
            (None, End::Answered) if disposition == Disposition::Done => Outcome::Acknowledged,
            (None, End::Answered) => Outcome::Refused,
            (None, _) => Outcome::Crashed,
        };
        *self.outcomes.entry(outcome).or_default() += 1;
        if disposition == Disposition::Returned {
            self.returned += 1;
        } else {
            self.disposed(message, doomed, disposition);
        }
    }

    /// Adds that a message was acknowledged or dead-lettered. Its first end counts.
    pub(crate) fn disposed(&mut self, message: &str, doomed: bool, disposition: Disposition) {
        if self.dispositions.contains_key(message) {
            return;
        }
        self.dispositions.insert(message.to_owned(), disposition);
        let placed = order_of(message).is_some_and(|order| self.is_placed(order));
        let (offence, what) = match (disposition, doomed) {
            (Disposition::Done, true) => {
                (Offence::Lost, "acknowledged, although its order fails permanently")
            }
            (Disposition::Done, false) if !placed => {
                (Offence::Lost, "acknowledged, but its order is not placed")
            }
            (Disposition::DeadLettered, false) => (Offence::DeadLettered, "dead-lettered"),
            _ => return,
        };
        self.offend(offence, format!("{message}: {what}"));
    }

    /// Why there was nothing to audit.
    pub(crate) fn no_effects(&self) -> Error {
        let outcomes = self.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}"));
        Error::NoEffects {
            deliveries: self.deliveries,
            outcomes: outcomes.collect(),
            problem: self.problem.clone(),
        }
    }

    /// Notes that a process that ran on has ended: another one may get its id.
    pub(crate) fn gone(&mut self, pid: u32) {
        self.open.remove(&pid);
    }

    pub(crate) fn offend(&mut self, offence: Offence, what: String) {
        self.offences.push((offence, what));
    }

    /// Adds an invocation of the rig that has ended. Add every line that its process wrote before.
    pub(crate) fn ended(
        &mut self,
        invocation: &Invocation,
        end: End,
        stopped: bool,
        overran: bool,
    ) {
        let result = &invocation.result;
        let is_returned = matches!(
            result,
            InvocationResult::FunctionError { kind, .. } if kind == "Idempotency.RecordsReturned"
        );
        self.ended_as(Ending {
            pid: invocation.pid,
            end,
            stopped,
            overran,
            failed: (!result.is_response() && !is_returned).then(|| result.to_string()),
            records: &invocation.records,
        });
    }

    /// Adds an invocation that has ended. Add every line that its process wrote before.
    pub(crate) fn ended_as(&mut self, ending: Ending<'_>) {
        self.now += 1;
        let Ending { pid, end, stopped, overran, failed, records } = ending;
        if end == End::Crashed || end == End::Answered && failed.is_some() {
            let result = failed.as_deref().unwrap_or("ok");
            self.offend(Offence::Crashed, format!("{pid}: {result}"));
        }
        let index = self.invocations.len();
        let mut fences = HashMap::new();
        // A process with a last invocation gets no other: this one is new, and the system gave it the same id.
        self.last.remove(&pid);
        for attempt in self.open.remove(&pid).unwrap_or_default() {
            if let Some(attempt) = self.attempts.get_mut(attempt) {
                attempt.invocation = Some(index);
                fences.insert(attempt.message.clone(), attempt.fence);
            }
        }
        if end != End::Answered {
            self.last.insert(pid, index);
        }
        let logged = records.iter().rev().find_map(|line| line.problem.clone());
        if let Some(problem) = failed.or(logged) {
            self.problem = Some(problem);
        }
        for line in records {
            let Some(order) = order_of(&line.record) else { continue };
            let history = self.orders.entry(order).or_default();
            history.hashes.extend(line.key_hash.clone());
            if let (Outcome::Executed, Some(fence)) = (&line.outcome, fences.get(&line.record)) {
                let completion = Completion { known: self.now, fence: *fence };
                history.completed.get_or_insert(completion);
            }
        }
        let logged = records.iter();
        let logged = logged.map(|line| (line.record.clone(), line.outcome.clone())).collect();
        self.invocations.push(Ended { end, stopped, overran, logged });
    }
}

/// An invocation that has ended, whoever ran it: the rig, or Lambda.
pub(crate) struct Ending<'a> {
    /// The process or the sandbox.
    pub(crate) pid: u32,
    pub(crate) end: End,
    pub(crate) stopped: bool,
    /// It took longer than the timeout.
    pub(crate) overran: bool,
    /// The error that its caller got, if it got no response. That each record is returned, so that the pollers slow
    /// down, is not one.
    pub(crate) failed: Option<String>,
    /// The function's lines about its records.
    pub(crate) records: &'a [RecordLine],
}

/// An execution of a handler.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) order: usize,
    pub(crate) message: String,
    pub(crate) pid: u32,
    pub(crate) fence: u64,
    pub(crate) started: u64,
    pub(crate) effects: Vec<Effect>,
    /// It has collected an effect for its transaction.
    pub(crate) collected: bool,
    /// When it returned from the step in which it had its effect, among everything that happened.
    pub(crate) kept: Option<u64>,
    pub(crate) invocation: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Effect {
    /// Its place among everything that happened.
    pub(crate) at: u64,
    pub(crate) name: String,
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) end: End,
    /// The rig stopped its process during the invocation.
    pub(crate) stopped: bool,
    /// It took longer than the timeout.
    pub(crate) overran: bool,
    /// The outcomes that the function logged, by message.
    pub(crate) logged: HashMap<String, Outcome>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Answered,
    /// The rig killed its process.
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
    /// The steps that at least one attempt has run.
    steps: BTreeSet<Step>,
    /// The counter of the order in its table, where effects are in transactions.
    pub(crate) placed: u64,
    /// The key hashes that the function logged for it.
    pub(crate) hashes: BTreeSet<String>,
    /// The first completion that the function logged.
    pub(crate) completed: Option<Completion>,
}

/// A completion: when it was logged, and the fence of the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    pub(crate) known: u64,
    pub(crate) fence: u64,
}

/// The kind of a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Offence {
    /// A message was acknowledged although its order had not been placed, or had failed permanently.
    Lost,
    /// A message was neither acknowledged nor dead-lettered, or a key is still held.
    Stuck,
    /// An order was placed again without an accepted cause.
    Doubled,
    /// A handler started for a key that was completed.
    RanAgain,
    /// A message was dead-lettered although its order does not fail permanently.
    DeadLettered,
    /// The store's records differ from what happened.
    Store,
    /// The first effect of a message came before that of an earlier message of its group.
    OutOfOrder,
    /// Two executions got the same fence.
    Fence,
    /// A process ended by itself, or an invocation failed as a whole.
    Crashed,
    /// The ledger contradicts itself.
    Ledger,
}
