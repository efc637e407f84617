//! The ends of invocations, as they become part of the history.

use std::collections::HashMap;

use lambda_idempotency_local::{Invocation, InvocationResult, Outcome, RecordLine};

use super::{Completion, End, Ended, History, Offence};
use crate::schedule::order_of;

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

impl History {
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
