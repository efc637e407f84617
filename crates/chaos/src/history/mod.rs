//! The course of a run, from three sources: the ledger, the invocations and the queue.

mod ending;
mod entries;

use std::collections::{BTreeMap, HashMap};

use lambda_idempotency_local::{Disposition, Outcome};

use crate::{
    Error,
    ledger::{Line, Step},
    schedule::{self, order_of},
};

pub(crate) use ending::Ending;
pub use entries::Offence;
pub(crate) use entries::{Attempt, Completion, Effect, End, Ended, OrderHistory};

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

    /// Notes how often the table says that an order was placed. Once is enough to settle its messages.
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
            self.settled(message, doomed, disposition);
        }
    }

    /// Adds that a message was acknowledged or dead-lettered. Its first end counts.
    pub(crate) fn settled(&mut self, message: &str, doomed: bool, disposition: Disposition) {
        if self.settled.contains_key(message) {
            return;
        }
        self.settled.insert(message.to_owned(), disposition);
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
}
