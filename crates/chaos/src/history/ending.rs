//! The ends of invocations, as they become part of the history.

use std::{collections::HashMap, ops::Range, time::Instant};

use lambda_idempotency_local::{Invocation, InvocationResult, Outcome, RecordLine};

use super::{Completion, End, Ended, History, Offence, sends};
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
    /// What the function logged of its records.
    pub(crate) records: &'a [RecordLine],
    /// From giving the event to the process to the end.
    pub(crate) time: Range<Instant>,
    /// When the requests to the store began that failed, or into which a fault was injected.
    pub(crate) failed_requests: Vec<Instant>,
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
            time: invocation.began..invocation.began + invocation.duration,
            failed_requests: sends::failed_requests(invocation),
        });
    }

    /// Adds an invocation that has ended. Add every line that its process wrote before.
    pub(crate) fn ended_as(&mut self, ending: Ending<'_>) {
        self.now += 1;
        let Ending { pid, end, stopped, overran, failed, records, time, failed_requests } = ending;
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
        for sent in self.open_sends.remove(&pid).unwrap_or_default() {
            if let Some(sent) = self.sends.get_mut(sent) {
                sent.invocation = Some(index);
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
        let is_done = |outcome: &Outcome| {
            matches!(outcome, Outcome::Executed | Outcome::Replayed | Outcome::Superseded)
        };
        let unrecorded = records.iter();
        let unrecorded = unrecorded.filter(|line| is_done(&line.outcome) && line.problem.is_some());
        let unrecorded = unrecorded.map(|line| line.record.clone()).collect();
        self.invocations.push(Ended {
            end,
            stopped,
            overran,
            logged,
            unrecorded,
            time,
            failed_requests,
        });
    }
}
