//! A worker: the smallest engine that follows the protocol's answers.

use lambda_idempotency_core::admission::{Admission, Overtaken, Settled};

use crate::{
    canonical::fresh_token,
    packed::{Cell, Payload, at},
    request::{Intent, Request},
    state::{Answer, Call, Flaw, Job},
    step::{Ended, Step, claim},
    witness::Event,
};

impl Step<'_> {
    /// A worker takes a delivery, and sends a claim.
    pub(crate) fn take(&mut self, worker: usize, payload: Payload, now: u8) {
        self.key.source.queued[usize::from(payload)] -= 1;
        self.key.calls[worker] = Some(self.new_claim(payload, now));
    }

    /// A first claim, which assumes that there is no record.
    pub(crate) fn new_claim(&mut self, payload: Payload, now: u8) -> Call {
        let token = fresh_token(self.key);
        let stamp = if self.setup.skewed_stamps { now } else { self.time };
        let lease = stamp + self.setup.lease;
        let claim = claim(self.setup, token, lease, payload);
        let Admission::Try { guard, held } = (self.protocol.admit)(&claim, None, at(stamp)) else {
            unreachable!("without a record, a claim is always tried");
        };
        let request = Request::new(Intent::Claim, token, (guard, Some(held.record)));
        Call {
            token,
            lease,
            held: request.record.expect("a claim writes a record"),
            job: Job::Claiming,
            request: Some(request),
            answer: None,
            payload,
        }
    }

    /// Sends a settlement: the handler has ended, its lease is renewed, or it will not run.
    pub(crate) fn settle(&mut self, worker: usize, mut call: Call, intent: Intent, now: u8) {
        // A completion does not wait for a renewal in flight.
        self.key.strays.extend(call.request.filter(|_| call.job == Job::Renewing));
        let write = (self.protocol.write)(&self.held(&call), &intent.settlement(), at(now));
        call.request = Some(Request::new(intent, call.token, write));
        call.answer = None;
        call.job = if matches!(intent, Intent::Renew(_)) { Job::Renewing } else { Job::Settling };
        if intent == Intent::Complete {
            self.key.effect.add(call.payload);
        }
        self.key.calls[worker] = Some(call);
    }

    /// A worker reads the answer to its write.
    pub(crate) fn react(&mut self, worker: usize, mut call: Call, answer: Answer, now: u8) {
        let request = call.request.take().expect("an answer has a request");
        call.answer = None;
        match (request.intent, answer) {
            (Intent::Claim, Answer::Written) => self.granted(worker, call, now),
            (Intent::Claim, Answer::Found(found)) => self.refused(worker, call, found, now),
            (_, Answer::Written) => self.done(worker, call, &request),
            (_, Answer::Found(found)) => self.missed(worker, call, &request, found, now),
        }
    }

    /// The claim was granted.
    fn granted(&mut self, worker: usize, mut call: Call, now: u8) {
        if self.setup.undo {
            call.job = Job::Granted;
            self.key.calls[worker] = Some(call);
        } else {
            self.start(worker, call, now);
        }
    }

    /// The handler starts, unless the worker learns of its claim only after the lease has expired.
    pub(crate) fn start(&mut self, worker: usize, mut call: Call, now: u8) {
        if now > call.held.lease() {
            return self.settle(worker, call, Intent::Undo, now);
        }
        self.check_start(&call);
        call.job = Job::Running;
        self.key.calls[worker] = Some(call);
    }

    fn check_start(&mut self, call: &Call) {
        let owns = |record: Cell| record.in_progress() && record.owner() == call.token;
        if !self.key.store.is_some_and(owns) {
            self.blame(Flaw::StartedWithoutKey);
        }
        if self.setup.fences_outlive_records {
            if call.held.fence() <= self.key.fence {
                self.blame(Flaw::FenceFellAfterRemoval);
            }
            self.key.fence = call.held.fence();
        }
        if self.time <= self.key.lingering && self.key.lingering > 0 {
            self.blame(Flaw::StartedBesideDropped);
        }
    }

    /// The claim found a record, or read that there is none.
    pub(crate) fn refused(&mut self, worker: usize, mut call: Call, found: Option<Cell>, now: u8) {
        let record = found.map(Cell::unpack);
        let admission = (self.protocol.admit)(&self.claim_of(&call), record.as_ref(), at(now));
        let mine = found.is_some_and(|found| found.same_work(call.held));
        if mine && !matches!(admission, Admission::Won(_)) {
            self.blame(Flaw::OwnWorkNotRecognised);
        }
        match admission {
            Admission::Try { guard, held } => {
                let request = Request::new(Intent::Claim, call.token, (guard, Some(held.record)));
                call.held = request.record.expect("a claim writes a record");
                call.request = Some(request);
                self.key.calls[worker] = Some(call);
            }
            Admission::Won(held) => {
                self.setup.witness.saw(Event::LostAnswerResolved);
                call.held = Cell::pack(&held.record);
                self.granted(worker, call, now);
            }
            // The workers of this model publish nothing: `machine_model` has messages.
            Admission::Replay(_) | Admission::Unsent(_) => {
                self.setup.witness.saw(Event::Replayed);
                self.end(worker, call, Ended::Acknowledged { lost: false });
            }
            Admission::PermanentlyFailed { .. } => self.end(worker, call, Ended::PermanentlyFailed),
            Admission::Busy { until } => {
                let found = found.expect("another worker holds the key");
                self.busy(worker, call, found, until);
            }
            Admission::Mismatch { .. } => {
                self.setup.witness.saw(Event::Mismatched);
                self.end(worker, call, Ended::Returned);
            }
            Admission::Foreign { .. } => {
                self.setup.witness.saw(Event::MetForeign);
                self.end(worker, call, Ended::Returned);
            }
        }
    }

    /// A settlement was written.
    fn done(&mut self, worker: usize, mut call: Call, request: &Request) {
        let ended = match request.intent {
            Intent::Complete => Ended::Acknowledged { lost: false },
            Intent::FailPermanently => Ended::PermanentlyFailed,
            Intent::Release | Intent::LeaveStanding | Intent::Undo | Intent::Claim => {
                Ended::Returned
            }
            Intent::Renew(_) => {
                call.held = request.record.expect("a renewal writes a record");
                call.job = Job::Running;
                self.key.calls[worker] = Some(call);
                return;
            }
        };
        self.end(worker, call, ended);
    }

    /// A settlement did not find its claim.
    fn missed(
        &mut self,
        worker: usize,
        mut call: Call,
        request: &Request,
        found: Option<Cell>,
        now: u8,
    ) {
        let record = found.map(Cell::unpack);
        let settlement = request.intent.settlement();
        let settled =
            (self.protocol.settled)(&self.held(&call), &settlement, record.as_ref(), at(now));
        let mine = found.zip(request.record).is_some_and(|(found, asked)| found.same_work(asked));
        if mine && settled != Settled::Done {
            self.blame(Flaw::OwnWorkNotRecognised);
        }
        match settled {
            Settled::Done => {
                if mine {
                    self.setup.witness.saw(Event::LostAnswerResolved);
                }
                self.done(worker, call, request);
            }
            Settled::Again { guard, record } => {
                call.request =
                    Some(Request::new(request.intent, call.token, (guard, Some(record))));
                self.key.calls[worker] = Some(call);
            }
            Settled::Overtaken(by) => self.overtaken(worker, call, request, found, by),
        }
    }

    /// Another worker's record is final: this settlement is given up, and a running handler is stopped.
    fn overtaken(
        &mut self,
        worker: usize,
        call: Call,
        request: &Request,
        found: Option<Cell>,
        by: Overtaken,
    ) {
        if found.is_some_and(|found| found.in_progress() && found.owner() == call.token) {
            self.blame(Flaw::ToldOvertakenWhileOwner);
        }
        match request.intent {
            Intent::Complete => self.setup.witness.saw(Event::CompletionFenced),
            Intent::Renew(_) => self.setup.witness.saw(Event::RenewalRefused),
            _ => {}
        }
        let ended = match by {
            Overtaken::Completed(_) if request.intent != Intent::Undo => {
                Ended::Acknowledged { lost: false }
            }
            _ => Ended::Returned,
        };
        self.end(worker, call, ended);
    }
}
