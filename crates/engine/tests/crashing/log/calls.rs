//! Calls of handlers: what is checked when one starts, and when it has its effect.

use lambda_idempotency_core::clock::Timestamp;
use lambda_idempotency_engine::call::Call;

use super::Log;
use crate::message::Message;

/// A call of a handler.
pub(super) struct Started {
    pub(super) invocation: usize,
    pub(super) label: &'static str,
    pub(super) fence: u64,
    pub(super) lost_attempts: u32,
    /// If its last attempts were lost: how much it is suspected.
    pub(super) losses: u32,
    pub(super) had_effect: bool,
    pub(super) runs: bool,
    /// Its worker or itself was stopped, so that it may be undone or unrecorded.
    pub(super) stopped: bool,
    pub(super) timed_out: bool,
}

/// A handler that runs, until this is dropped.
pub(crate) struct Running {
    log: Log,
    at: usize,
}

impl Running {
    /// The effect happens.
    pub(crate) fn effect(&self) {
        self.log.effect(self.at);
    }

    /// The effect of its step happens.
    pub(crate) fn step(&self) {
        let mut state = self.log.lock();
        let Started { label, stopped, .. } = state.calls[self.at];
        state.note(|| format!("  the step of {label} runs"));
        if state.steps.contains(label) && !stopped {
            state.violations.insert(format!("{label} runs a step again that the store had"));
        }
        let earlier = &state.calls[..self.at];
        let was_stopped = |c: &Started| c.label == label && c.stopped;
        if state.step_runs.contains_key(label) && !stopped && !earlier.iter().any(was_stopped) {
            state.violations.insert(format!("{label} repeats its step, and no worker stopped"));
        }
        *state.step_runs.entry(label).or_default() += 1;
    }

    /// Its step has returned.
    pub(crate) fn goes_on(&self) {
        let mut state = self.log.lock();
        let label = state.calls[self.at].label;
        if !state.steps.contains(label) {
            state.violations.insert(format!("{label} goes on after a step that is not kept"));
        }
    }

    /// The effect, for when the store commits it.
    pub(crate) fn commits(&self) -> impl Fn() + Send + Sync + 'static {
        let (log, at) = (self.log.clone(), self.at);
        move || log.effect(at)
    }

    /// The handler stops here and now, for ever or by a panic.
    pub(crate) fn stops(&self, for_ever: bool) {
        let mut state = self.log.lock();
        state.stops += 1;
        let call = &mut state.calls[self.at];
        (call.stopped, call.timed_out) = (true, for_ever);
        let label = call.label;
        state.note(|| format!("  {label} stops"));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.log.lock().calls[self.at].runs = false;
    }
}

impl Log {
    fn effect(&self, at: usize) {
        let mut state = self.lock();
        let call = &mut state.calls[at];
        call.had_effect = true;
        self.ledger.record(call.label, format!("fence {}", call.fence));
        let label = call.label;
        let is_late = state.calls.iter().skip(at + 1).any(|later| later.label == label);
        if is_late && !state.is_optimistic {
            state.violations.insert(format!("{label} has its effect after another took over"));
        }
        state.note(|| format!("  {label} has its effect"));
    }

    /// A handler was called.
    pub(crate) fn started(
        &self,
        invocation: usize,
        message: &Message,
        call: &Call,
        now: Timestamp,
    ) -> Running {
        let mut state = self.lock();
        let Message { label, group, id, .. } = *message;
        let (fence, lost_attempts) = (call.fence(), call.lost_attempts());
        state.note(|| format!("  {label} is called: {call:?}"));
        let mut wrong = Vec::new();
        // Without a claim, these are not promised: of such calls one is committed.
        let claims = !state.is_optimistic;
        if claims && state.is_final(label) {
            wrong.push("is called although it is done");
        }
        let before: Vec<&Started> = state.calls.iter().filter(|c| c.label == label).collect();
        if claims && before.iter().any(|earlier| earlier.runs) {
            wrong.push("runs twice at the same time");
        }
        if claims && before.iter().any(|earlier| earlier.fence >= fence) {
            wrong.push("has a fence that does not rise");
        }
        let told = call.failed_attempts() + lost_attempts;
        if claims && told < u32::try_from(before.len()).unwrap() {
            wrong.push("is not told of an earlier call");
        }
        if state.leases.get(&(label, fence)).is_some_and(|lease| now > *lease) {
            wrong.push("begins after its lease");
        }
        if call.handler_deadline().is_some_and(|deadline| now >= deadline) {
            wrong.push("begins when its time is over");
        }
        if lost_attempts > state.stops {
            wrong.push("is told of more lost attempts than were stopped");
        }
        let losses = state.losses.get(label).map_or(0, |losses| losses.of(fence));
        let mut beside = state.calls.iter().filter(|c| c.runs && c.invocation == invocation);
        if beside.any(|other| other.losses != losses || losses > 1) {
            wrong.push("runs beside another, although one of them may be what kills workers");
        }
        if group.is_some() && !state.is_next(group, id, label) {
            wrong.push("starts before what is before it in its group is done");
        }
        let closed =
            |(at, of): &(usize, Option<&str>)| *at == invocation && of.is_some() && *of == group;
        if state.closed.iter().any(closed) {
            wrong.push("starts behind one that went back");
        }
        state.violations.extend(wrong.into_iter().map(|what| format!("{label} {what}")));
        let started = Started {
            invocation,
            label,
            fence,
            lost_attempts,
            losses,
            had_effect: false,
            runs: true,
            stopped: false,
            timed_out: false,
        };
        state.calls.push(started);
        Running { log: self.clone(), at: state.calls.len() - 1 }
    }
}
