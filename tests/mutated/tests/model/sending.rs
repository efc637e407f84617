//! Writes on the network: those that arrive, those without an answer, and those of dead workers.

use crate::{
    request::{Condition, Intent, Request},
    setup::Network,
    state::Job,
    step::{Ended, Step},
    witness::Event,
};

/// What a worker does after a write that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolve {
    /// It sends the same write again.
    Retry,
    /// It gives up: a claim in doubt is undone by its token, a completion counts as lost.
    GiveUp,
    /// Having given up on a completion, it releases the key after all.
    Regret,
}

impl Step<'_> {
    /// A write was sent, and may be lost at once. On a prompt network it arrives at once, and so do the
    /// writes that follow from it, except those that depend on a read and so race with others: a takeover,
    /// a renewal, a completion that found no record.
    pub(crate) fn send(&mut self, worker: usize, lost: Option<Resolve>, now: u8) {
        if let Some(resolve) = lost {
            self.unanswered(worker, resolve, now);
        }
        if lost == Some(Resolve::Retry) || self.setup.network != Network::Prompt {
            return;
        }
        let lands = |request: Request| match request.guard {
            Condition::OwnedBy(_) => true,
            Condition::Absent => request.intent == Intent::Claim,
            Condition::Unchanged(_) => false,
        };
        while !self.key.flaws.any()
            && self.key.calls[worker].and_then(|call| call.request).is_some_and(lands)
        {
            self.arrive(worker, now);
        }
    }

    /// A worker's write reaches the store.
    pub(crate) fn arrive(&mut self, worker: usize, now: u8) {
        let mut call = self.key.calls[worker].expect("the worker has sent a write");
        let answer = self.land(&call.request.expect("the worker has sent a write"));
        if self.setup.network == Network::SlowBothWays {
            call.answer = Some(answer);
            self.key.calls[worker] = Some(call);
        } else {
            self.react(worker, call, answer, now);
        }
    }

    /// The write got no answer. A copy of it stays in flight.
    fn unanswered(&mut self, worker: usize, resolve: Resolve, now: u8) {
        let mut call = self.key.calls[worker].expect("the worker has sent a write");
        let request = call.request.expect("only a write can go unanswered");
        if call.answer.take().is_none() {
            self.key.strays.push(request);
        }
        match (resolve, request.intent) {
            (Resolve::Retry, _) => self.key.calls[worker] = Some(call),
            (Resolve::GiveUp, Intent::Claim) => self.settle(worker, call, Intent::Undo, now),
            (Resolve::GiveUp, Intent::Complete) => {
                self.setup.witness.saw(Event::CompletionLost);
                self.end(worker, call, Ended::Acknowledged { lost: true });
            }
            (Resolve::GiveUp, Intent::Renew(_)) => {
                call.request = None;
                call.job = Job::Running;
                self.key.calls[worker] = Some(call);
            }
            (Resolve::GiveUp, _) => self.end(worker, call, Ended::Returned),
            (Resolve::Regret, _) => self.settle(worker, call, Intent::Release, now),
        }
    }

    /// The worker dies. Its writes in flight may still arrive, and its deliveries are returned.
    pub(crate) fn crash(&mut self, worker: usize) {
        let Some(call) = self.key.calls[worker].take() else { return };
        if call.answer.is_none() {
            self.key.strays.extend(call.request);
        }
        self.tell(call.payload, Ended::Returned);
    }

    /// Time has advanced: a worker whose lease has expired by its own clock stops its handler.
    pub(crate) fn stop_what_lapsed(&mut self) {
        if !self.setup.stops {
            return;
        }
        for worker in 0..self.key.calls.len() {
            let Some(call) = self.key.calls[worker] else { continue };
            if call.runs() && self.time > call.held.lease() {
                self.setup.witness.saw(Event::StoppedWithItsLease);
                self.crash(worker);
            }
        }
    }

    /// The handler is dropped at the deadline, and its effect may still happen. The lease stays and the
    /// record says why.
    pub(crate) fn drop_handler(&mut self, worker: usize, now: u8) {
        let call = self.key.calls[worker].expect("its handler runs");
        self.setup.witness.saw(Event::Dropped);
        self.key.lingering = self.key.lingering.max(call.held.lease());
        self.settle(worker, call, Intent::LeaveStanding, now);
    }
}
