//! What a worker does: the smallest engine that keeps to the protocol's answers.

use lambda_idempotency_core::admission::{Admission, Overtaken, Settled};

use crate::{
    canonical::fresh_token,
    packed::{Cell, Condition, Intent, Request, at},
    protocol::Protocol,
    setup::Network,
    state::{Answer, Call, Flaw, Job},
    step::Step,
    witness::Event,
};

/// What a worker does about a write that nobody answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolve {
    /// It sends the same write again.
    Retry,
    /// It stops waiting: a claim in doubt is put back by its token, a completion counts as lost.
    GiveUp,
    /// Having given up on a completion, it releases the key after all.
    Regret,
}

impl<P: Protocol> Step<'_, P> {
    /// A worker takes a delivery and sends a claim.
    pub(crate) fn take(&mut self, worker: usize, now: u8) {
        let token = fresh_token(self.key);
        let stamp = if self.setup.skewed_stamps { now } else { self.time };
        let lease = stamp + self.setup.lease;
        let Admission::Try { guard, held } = P::admit(&self.claim(token, lease), None, at(stamp))
        else {
            unreachable!("nothing keeps a claim from being tried");
        };
        self.key.source.queued -= 1;
        let request = Request::new(Intent::Claim, token, (guard, Some(held.record)));
        self.key.calls[worker] = Some(Call {
            token,
            lease,
            held: request.record.expect("a claim writes a record"),
            job: Job::Claiming,
            request: Some(request),
            answer: None,
        });
    }

    /// The handler is done, or is to have longer, or is not to run: a settlement is sent.
    pub(crate) fn settle(&mut self, worker: usize, mut call: Call, intent: Intent, now: u8) {
        let write = P::write(&self.held(&call), &intent.settlement(), at(now));
        call.request = Some(Request::new(intent, call.token, write));
        call.answer = None;
        call.job = if matches!(intent, Intent::Renew(_)) { Job::Renewing } else { Job::Settling };
        self.key.effect |= intent == Intent::Complete;
        self.key.calls[worker] = Some(call);
    }

    /// A worker reads the answer to its write.
    pub(crate) fn react(&mut self, worker: usize, mut call: Call, answer: Answer, now: u8) {
        let request = call.request.take().expect("who gets an answer has asked");
        call.answer = None;
        match (request.intent, answer) {
            (Intent::Claim, Answer::Written) => self.granted(worker, call, now),
            (Intent::Claim, Answer::Found(found)) => self.refused(worker, call, found, now),
            (_, Answer::Written) => self.done(worker, call, &request),
            (_, Answer::Found(found)) => self.missed(worker, call, &request, found, now),
        }
    }

    /// The key is held. Whoever learns of it too late does not start: its time is over.
    fn granted(&mut self, worker: usize, mut call: Call, now: u8) {
        if now > call.lease && !P::starts_late() {
            return self.settle(worker, call, Intent::PutBack, now);
        }
        let owns = |record: Cell| record.in_progress() && record.owner() == call.token;
        if !self.key.store.is_some_and(owns) {
            self.key.blame(Flaw::StartedWithoutKey);
        }
        call.job = Job::Running;
        self.key.calls[worker] = Some(call);
    }

    /// The claim found something.
    fn refused(&mut self, worker: usize, mut call: Call, found: Option<Cell>, now: u8) {
        let record = found.map(Cell::unpack);
        let admission = P::admit(&self.claim(call.token, call.lease), record.as_ref(), at(now));
        let mine = found.is_some_and(|found| found.same_work(call.held));
        if mine && !matches!(admission, Admission::Won(_)) {
            self.key.blame(Flaw::OwnWorkNotRecognised);
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
            Admission::Replay(_) => {
                self.setup.witness.saw(Event::Replayed);
                self.acknowledge(worker, false);
            }
            Admission::Remembered { .. } => self.park(worker),
            Admission::Busy { .. } => {
                self.setup.witness.saw(Event::Busy);
                if P::busy_is_done() { self.acknowledge(worker, false) } else { self.back(worker) }
            }
            Admission::Mismatch => unreachable!("the model has no fingerprints"),
        }
    }

    /// A settlement was written.
    fn done(&mut self, worker: usize, mut call: Call, request: &Request) {
        match request.intent {
            Intent::Complete => self.acknowledge(worker, false),
            Intent::Remember => self.park(worker),
            Intent::Release | Intent::PutBack | Intent::Claim => self.back(worker),
            Intent::Renew(_) => {
                call.held = request.record.expect("a renewal writes a record");
                call.job = Job::Running;
                self.key.calls[worker] = Some(call);
            }
        }
    }

    /// A settlement found something other than its claim.
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
        let settled = P::settled(&self.held(&call), &settlement, record.as_ref(), at(now));
        let mine = found.zip(request.record).is_some_and(|(found, asked)| found.same_work(asked));
        if mine && settled != Settled::Done {
            self.key.blame(Flaw::OwnWorkNotRecognised);
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
            Settled::Overtaken(by) => self.overtaken(worker, &call, request, found, by),
        }
    }

    /// Someone else's word stands; ours is withdrawn.
    fn overtaken(
        &mut self,
        worker: usize,
        call: &Call,
        request: &Request,
        found: Option<Cell>,
        by: Overtaken,
    ) {
        if found.is_some_and(|found| found.in_progress() && found.owner() == call.token) {
            self.key.blame(Flaw::ToldOvertakenWhileOwner);
        }
        if request.intent == Intent::Complete {
            self.setup.witness.saw(Event::CompletionFenced);
        }
        match by {
            Overtaken::Completed(_) => self.acknowledge(worker, false),
            Overtaken::Failed { .. } => self.park(worker),
            Overtaken::Mismatch | Overtaken::InProgress { .. } | Overtaken::Gone => {
                self.back(worker);
            },
        }
    }

    /// A write was sent, and is perhaps lost at once. On a prompt network it lands at once, and so
    /// does what it leads to; but what rests on something that was read races with others: a
    /// takeover, a renewal, a completion that found nothing.
    pub(crate) fn send(&mut self, worker: usize, lost: Option<Resolve>, now: u8) {
        if let Some(resolve) = lost {
            self.unanswered(worker, resolve, now);
        }
        if lost == Some(Resolve::Retry) || self.setup.network != Network::Prompt {
            return;
        }
        let lands = |request: Request| match request.guard {
            Condition::Mine(_) => true,
            Condition::Absent => request.intent == Intent::Claim,
            Condition::Seen(_) => false,
        };
        while !self.key.flaws.any()
            && self.key.calls[worker].and_then(|call| call.request).is_some_and(lands)
        {
            self.arrive(worker, now);
        }
    }

    /// A worker's write reaches the store.
    pub(crate) fn arrive(&mut self, worker: usize, now: u8) {
        let mut call = self.key.calls[worker].expect("it sent something");
        let answer = self.land(&call.request.expect("it sent something"));
        if self.setup.network == Network::SlowBothWays {
            call.answer = Some(answer);
            self.key.calls[worker] = Some(call);
        } else {
            self.react(worker, call, answer, now);
        }
    }

    /// The write got no answer. A copy of it stays on its way.
    fn unanswered(&mut self, worker: usize, resolve: Resolve, now: u8) {
        let mut call = self.key.calls[worker].expect("it sent something");
        let request = call.request.expect("only a write can go unanswered");
        if call.answer.take().is_none() {
            self.key.strays.push(request);
        }
        match (resolve, request.intent) {
            (Resolve::Retry, _) => self.key.calls[worker] = Some(call),
            (Resolve::GiveUp, Intent::Claim) => self.settle(worker, call, Intent::PutBack, now),
            (Resolve::GiveUp, Intent::Complete) => {
                self.setup.witness.saw(Event::CompletionLost);
                self.acknowledge(worker, true);
            }
            (Resolve::GiveUp, Intent::Renew(_)) => {
                call.request = None;
                call.job = Job::Running;
                self.key.calls[worker] = Some(call);
            }
            (Resolve::GiveUp, _) => self.back(worker),
            (Resolve::Regret, _) => self.settle(worker, call, Intent::Release, now),
        }
    }

    /// The worker dies. What it sent may still land; what it took comes back.
    pub(crate) fn crash(&mut self, worker: usize) {
        let Some(call) = self.key.calls[worker] else { return };
        if call.answer.is_none() {
            self.key.strays.extend(call.request);
        }
        self.back(worker);
    }

    /// I4: only a completed key is acknowledged, or one whose own completion could not be recorded.
    fn acknowledge(&mut self, worker: usize, completion_lost: bool) {
        if !(self.key.completed || completion_lost && self.key.effect) {
            self.key.blame(Flaw::AcknowledgedTooSoon);
        }
        self.key.source.acknowledged += 1;
        self.key.calls[worker] = None;
    }

    fn back(&mut self, worker: usize) {
        self.key.source.queued += 1;
        self.key.calls[worker] = None;
    }

    fn park(&mut self, worker: usize) {
        self.key.source.parked += 1;
        self.key.calls[worker] = None;
    }
}
