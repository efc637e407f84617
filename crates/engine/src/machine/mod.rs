//! The engine as a state machine without I/O: what happened goes in, what is to be done comes out.
//!
//! A [`Machine`] has the records of one batch. It takes what happened and the time ([`Machine::handle`]),
//! and returns what to do ([`Machine::next`], [`Machine::rest`]) and when to ask again ([`Machine::wake`]).
//! It awaits nothing, reads no clock, and calls neither the store nor a handler. Its driver does that, and
//! decides nothing. Questions that its surroundings answer at once (owner tokens, what the process remembers)
//! go to the [`Host`]. The same inputs give the same
//! outputs, and a machine can be cloned, compared and hashed, so that a model checker can drive this very
//! code.
//!
//! # How it works
//!
//! Each record is a state machine of its own: it is in a `record::Stage`, and what happens to it is a
//! `rule::RecordEvent`. `table` says which rule handles which event in which stage. A rule is a function of one record
//! (a `rule::RecordView`) that returns what becomes of it (a `rule::Decision`); it sees neither the machine nor other
//! records. The loop of the table enters the stage, and continues with what follows for others until nothing is left.
//! The stage says in which list a record is, and only the table changes either.
//!
//! | question | file |
//! |---|---|
//! | What goes in, what comes out, and what is asked of the surroundings? | `io` |
//! | *A record* | |
//! | What is asked for with it? Which stages are there? What is known of it? | `record` |
//! | What can happen to it, what does a rule see of it, and what becomes of it? | `rule` |
//! | Which rule handles that? In which list is the record then? What follows for others? | `table` |
//! | *Rules, for one record* | |
//! | What follows when it begins, when it has its turn, and from the answer to its claim? When is a claim undone? | `claim` |
//! | What follows when its handler ends or is stopped, when its lease is renewed or lost, when a step has ended? | `handlers` |
//! | What is written then, and what follows from the answer? | `settle` |
//! | When are the messages of a completion sent, and what if they cannot be? | `messages` |
//! | Which outcome follows from a result, an error or a stored record? | `outcome` |
//! | *Parts, which own their state* | |
//! | Which phase has the batch? What may be looked at, claimed and started now? | `schedule`; `launch` begins it |
//! | Which record is next in its key and its group? Which records are copies? | `order` |
//! | Is there time for this: a start, a claim, a settlement? When is the stop? | `budget` |
//! | Which records may have killed the process? Which of them run together, and in which order? | `quarantine` |
//! | How long is a key held? Which leases are to be renewed, which have lapsed? | `lease` |
//! | For how long does a call of the store delay the next one? When is it made again? | `calls` |

mod budget;
mod calls;
mod claim;
mod handlers;
mod io;
mod launch;
mod lease;
mod messages;
mod order;
mod outcome;
mod quarantine;
mod record;
mod rule;
mod schedule;
mod settle;
mod table;

use std::{
    cmp::Reverse,
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use lambda_idempotency_core::{
    admission::{Finding, admit},
    clock::Timestamp,
    outcome::NotStarted,
    record::IdempotencyRecord,
    store::{StoreError, StoreErrorKind, Verdict, Write},
};

use self::{
    budget::TimeBudget,
    calls::CallIds,
    claim::Claims,
    io::unsent,
    lease::{Leases, Terms},
    messages::Outboxes,
    order::Order,
    quarantine::Quarantine,
    record::{Records, Stage},
    rule::{Claiming, RecordEvent, Written},
    schedule::Starts,
    settle::{Settlements, stored},
};
pub use self::{
    calls::CallId,
    io::{Action, Carried, Collected, HandlerEnd, Host, Input, RecordOutcome, Setting},
    record::{Handling, NewRecord},
};

pub(crate) use self::{
    calls::FIRST_CALL,
    io::{each, unanswered},
};

/// The present time, and the host.
struct Present<'h> {
    now: Timestamp,
    host: &'h mut dyn Host,
}

/// When handlers were polled for longer than this, together, completions are sent before the next one is polled,
/// even if a call is on its way: a kill doubles what returned meanwhile. Sending each completion alone would cost a
/// request for each record.
const LONG_POLL: Duration = Duration::from_millis(10);

/// The state machine of one batch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Machine<'a> {
    setting: Setting<'a>,
    records: Records<'a>,
    order: Order,
    starts: Starts,
    quarantine: Quarantine,
    /// The records that wait for a busy key, by their wake-up times.
    waiting: BTreeSet<(Timestamp, usize)>,
    claims: Claims,
    settlements: Settlements,
    outboxes: Outboxes,
    leases: Leases,
    call_ids: CallIds,
    /// The next outputs, in this order.
    actions: VecDeque<Action>,
    /// For how long handlers were polled since all that was to be sent has left.
    polled: Duration,
}

impl<'a> Machine<'a> {
    /// A machine for these records, at the beginning of their invocation.
    pub fn new(
        setting: Setting<'a>,
        given: impl Iterator<Item = NewRecord<'a>>,
        now: Timestamp,
        host: &mut dyn Host,
    ) -> Self {
        let records = Records::new(given);
        let mut order = Order::new(
            records.all().iter().map(|record| (record.key(), record.given.group.as_ref())),
        );
        // In a mutex each of them runs.
        if setting.policy.mode.keeps_completions() {
            order.find_copies(|at| records.of(at).given.same());
        }
        let end = setting.deadline.unwrap_or_else(|| now.plus(setting.policy.fallback_timeout));
        // The worker may go on until `end`, although nobody waits for its work any more.
        let work_end = setting.work_end.map_or(end, |work_end| end.min(work_end));
        let budget = TimeBudget::new(now, work_end, setting.time_after);
        // A batch of one, as each call of `run` is, has few at a time.
        let actions = VecDeque::with_capacity(records.all().len().clamp(2, 16));
        let mut machine = Self {
            starts: Starts::new(budget, setting.policy.concurrency, records.all().len()),
            leases: Leases::new(Terms::new(setting.policy, end)),
            setting,
            records,
            order,
            quarantine: Quarantine::default(),
            waiting: BTreeSet::new(),
            claims: Claims::default(),
            settlements: Settlements::default(),
            outboxes: Outboxes::default(),
            call_ids: CallIds::default(),
            actions,
            polled: Duration::ZERO,
        };
        // Those that were received most often begin first.
        let receives = machine.records.all().iter().map(|record| record.given.receives);
        let mut begin: Vec<(usize, u32)> = receives.enumerate().collect();
        begin.sort_by_key(|(_, receives)| Reverse(*receives));
        let present = &mut Present { now, host };
        for (at, receives) in begin {
            machine.run(at, RecordEvent::Begin { looks: receives > 1 }, present);
        }
        machine
    }

    /// Handles an input.
    pub fn handle(&mut self, input: Input, now: Timestamp, host: &mut dyn Host) {
        let present = &mut Present { now, host };
        match input {
            Input::Read { call, found } => {
                let Some(looks) = self.claims.answered(call, now) else { return };
                let found = each(found, || Err(unanswered()));
                for (claiming, found) in looks.members.into_iter().zip(found) {
                    if let Ok(seen) = &found {
                        learn(&claiming, seen.as_ref(), present);
                    }
                    self.run(claiming.at, RecordEvent::Looked(claiming, found), present);
                }
            }
            Input::Written { call, writes, verdicts } => {
                self.written(call, writes, verdicts, present)
            }
            Input::Sent { call, answers } => {
                for (outbox, answer) in
                    self.outboxes.sent(call, each(answers, || Err(unsent())), now)
                {
                    self.run(outbox.at, RecordEvent::Sent(outbox, answer), present);
                }
            }
            Input::Ended { at, ended, since, polled } => {
                self.polled += polled;
                if let Some(since) = since {
                    let took = now.since(since);
                    self.records.at(at).ran_for = Some(took);
                    present.host.took(took);
                }
                self.run(at, RecordEvent::Ended(ended), present);
            }
            Input::Steps { at, steps } => {
                self.run(at, RecordEvent::Steps(steps), present);
            }
            Input::Polled { polled } => self.polled += polled,
        }
    }

    /// The next output; `None` if there are no more. Calls that are gathered to be sent together come from
    /// [`rest`](Self::rest).
    pub fn next(&mut self, now: Timestamp, host: &mut dyn Host) -> Option<Action> {
        if self.actions.is_empty() {
            let present = &mut Present { now, host };
            self.stop_overdue(present);
            self.leave_slow(now);
            if !self.starts.budget.is_over(now) {
                self.launch(present);
            }
            self.send_claims(now);
            self.send_messages(now);
            self.renew(now);
            // Once the response is due, the machine would not see the answer to a write.
            let is_due = self.starts.budget.is_reply_due(now);
            let must_flush = self.must_flush(Duration::ZERO) && !is_due;
            let sent = (must_flush || self.settlements.is_overdue(now))
                && self.send_settlements(must_flush, now);
            // Calls that are on their way already have to leave as well.
            if sent || must_flush {
                self.polled = Duration::ZERO;
                self.actions.push_back(Action::GiveWay);
            }
        }
        self.actions.pop_front()
    }

    /// Whether no further handler may be polled before the machine is asked what to do. `polled` is for how long
    /// handlers were polled since the machine was told last.
    pub fn must_flush(&self, polled: Duration) -> bool {
        self.polled + polled > LONG_POLL
    }

    /// Nothing else is ready: sends the calls that were gathered, and ends what is due by the clock.
    /// Returns whether there are outputs now.
    pub fn rest(&mut self, now: Timestamp, host: &mut dyn Host) -> bool {
        let present = &mut Present { now, host };
        if self.starts.budget.is_over(now) {
            self.stop(present);
        }
        if self.starts.budget.is_reply_due(now) {
            self.abandon(present);
        }
        self.send_settlements(false, now);
        !self.actions.is_empty()
    }

    /// When to ask the machine again if nothing happens before.
    pub fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let budget = &self.starts.budget;
        let stop = (!self.starts.is_closed()).then(|| budget.stop());
        let ends = [stop, Some(budget.reply())].into_iter();
        let lease = self.leases.next_due(now);
        let waiting = self.waiting.first().map(|(wake, _)| *wake);
        let keeps_others = !self.starts.turn().is_empty() || self.quarantine.is_waiting();
        let slow = self.settlements.next_slow(now).filter(|_| keeps_others);
        let due = [self.settlements.next_due(now), slow, lease, waiting];
        ends.chain(due).flatten().min()
    }

    /// Whether every record has its outcome, and nothing is left to be settled.
    pub fn is_done(&self) -> bool {
        self.records.open == 0 && self.settlements.is_empty() && self.actions.is_empty()
    }
}

/// Passes each answer of the store to the record that it is for.
impl Machine<'_> {
    fn written(
        &mut self,
        call: CallId,
        writes: Vec<Write>,
        verdicts: Vec<Verdict>,
        present: &mut Present<'_>,
    ) {
        let now = present.now;
        let verdicts = each(verdicts, || Verdict::Unknown(unanswered()));
        let answers = |cut_short| {
            let writes = writes.into_iter().zip(verdicts);
            writes.map(move |(write, verdict)| Written { record: write.record, verdict, cut_short })
        };
        if let Some(settled) = self.settlements.answered(call, now) {
            for (settling, written) in settled.members.into_iter().zip(answers(settled.cut_short)) {
                if let Some(stored) = stored(&written) {
                    present.host.learn(&settling.key, stored, now);
                }
                self.run(settling.at, RecordEvent::Settled(settling, written), present);
            }
        } else if let Some(renewed) = self.leases.calls.answered(call, now) {
            for (kept, written) in renewed.members.into_iter().zip(answers(renewed.cut_short)) {
                self.run(kept.at, RecordEvent::Renewed(kept, written), present);
            }
        } else if let Some(claimed) = self.claims.answered(call, now) {
            for (claiming, written) in claimed.members.into_iter().zip(answers(claimed.cut_short)) {
                if let Verdict::Found(seen) = &written.verdict {
                    learn(&claiming, seen.as_ref(), present);
                }
                self.run(claiming.at, RecordEvent::Claimed(claiming, written), present);
            }
        }
    }
}

/// Lets the process remember a completion that answers this claim.
fn learn(claiming: &Claiming, seen: Option<&IdempotencyRecord>, present: &mut Present<'_>) {
    if let Some(seen) = seen
        && !claiming.is_undone()
        && let Finding::Completed(_) = admit(&claiming.claim, Some(seen), present.now)
    {
        present.host.learn(&claiming.key, seen, present.now);
    }
}

/// Sends the calls that are due: claims, settlements and renewals to the store, messages to the sender.
impl Machine<'_> {
    /// Sends the claims that are to be sent.
    fn send_claims(&mut self, now: Timestamp) {
        let lease_until = self.leases.terms.lease_until(now);
        let ends = (lease_until, self.starts.budget.doubt_deadline(now));
        let is_only = self.records.all().len() == 1;
        while let Some(call) = self.claims.send(self.call_ids.next(), now, ends, is_only) {
            self.make(call);
        }
    }

    /// Sends the settlements that are due. Says whether there were any.
    fn send_settlements(&mut self, must_flush: bool, now: Timestamp) -> bool {
        let call = self.settlements.send(self.call_ids.next(), must_flush, now);
        call.map(|call| self.make(call)).is_some()
    }

    /// Renews the leases that are due.
    fn renew(&mut self, now: Timestamp) {
        let reply = self.starts.budget.reply();
        if let Some(call) = self.leases.send(self.call_ids.next(), &self.records, now, reply) {
            self.make(call);
        }
    }

    /// Hands messages to the sender.
    fn send_messages(&mut self, now: Timestamp) {
        let last = self.starts.budget.settle_deadline(now);
        while let Some(call) = self.outboxes.send(self.call_ids.next(), now, last) {
            self.make(call);
        }
    }

    /// Makes this call, which has the next number.
    fn make(&mut self, call: Action) {
        self.call_ids.sent();
        self.actions.push_back(call);
    }
}

/// Ends the time for handlers, or the whole invocation.
impl Machine<'_> {
    /// Stops handlers whose lease has ended, and records that would start without one. The process was
    /// suspended, its processor was busy, or the lease could not be renewed. A successor may have taken the
    /// key over.
    fn stop_overdue(&mut self, present: &mut Present<'_>) {
        if present.now > self.leases.terms.end {
            self.stop(present);
        }
        for kept in self.leases.take_lapsed(present.now) {
            self.run(kept.at, RecordEvent::Lapsed, present);
        }
    }

    /// Stops the handlers: none starts any more. A running handler is dropped and its claim stays
    /// until the lease ends; a record whose handler has not begun is returned to its source.
    fn stop(&mut self, present: &mut Present<'_>) {
        if self.starts.is_closed() {
            return;
        }
        for at in self.records.in_stage(|stage| stage == Stage::Running) {
            self.run(at, RecordEvent::Stop, present);
        }
        self.starts.close();
        for at in self.records.in_stage(Stage::has_not_begun) {
            self.run(at, RecordEvent::Close(NotStarted::Deadline), present);
        }
    }

    /// Ends the invocation: its response is due.
    fn abandon(&mut self, present: &mut Present<'_>) {
        self.stop(present);
        for claiming in self.claims.abandon() {
            self.run(claiming.at, RecordEvent::Unavailable(too_late()), present);
        }
        for outbox in self.outboxes.abandon() {
            let too_late = Err(messages::too_late());
            self.run(outbox.at, RecordEvent::Sent(outbox, too_late), present);
        }
        for settling in self.settlements.abandon() {
            let verdict = Verdict::Unknown(too_late());
            let written = Written { record: None, verdict, cut_short: true };
            self.run(settling.at, RecordEvent::Settled(settling, written), present);
        }
    }
}

/// The response is due, and the store has not answered.
fn too_late() -> StoreError {
    StoreError::new(
        StoreErrorKind::Unavailable,
        "no answer from the store before the invocation's deadline",
    )
}
