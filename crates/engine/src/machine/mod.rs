//! The engine as a state machine without I/O: what happened goes in, what is to be done comes out.
//!
//! A [`Machine`] has the records of one batch. It takes what happened and the time ([`Machine::handle`]),
//! and returns what to do ([`Machine::next`], [`Machine::rest`]) and when to ask again ([`Machine::wake`]).
//! It awaits nothing, reads no clock, and calls neither the store nor a handler. Its driver does that, and
//! decides nothing. Questions that its surroundings answer at once (owner tokens, what other invocations of
//! the process do, which user code puts a record aside) go to the [`Host`]. The same inputs give the same
//! outputs, and a machine can be cloned, compared and hashed, so that a model checker can drive this very
//! code.
//!
//! # Which question, which file
//!
//! | question | file |
//! |---|---|
//! | What is asked for with a record? Which records ask for the same? | `ask` |
//! | Which stage is a record in? What is known of it? | `entry`; all of them are the `records` |
//! | Which record is next in its key and its group? Which records are copies? | `order` |
//! | Is there time for this: a start, a claim, a settlement? When is the stop? | `budget` |
//! | What may be looked at, claimed and started now? Is the end of starts reached? | `starts` |
//! | Which records may have killed the process? Which of them run together, and in which order? | `quarantine` |
//! | Which records wait for a busy key, and until when? | `waiting` |
//! | What does a record want of its key, and which answers are there? | `wanted` |
//! | Which claims are on their way? | `claims`; one claim is a `claims::pending` |
//! | When is a claim in doubt asked again, and when undone? | `claims::in_doubt` |
//! | Which settlements are to be sent, when, and for how long are they tried? | `settlements` |
//! | Which messages are to be sent, which were handed to the sender? | `outboxes` |
//! | How long is a key held? Which leases are to be renewed, which have lapsed? | `leases` |
//! | What goes in and what comes out? | `inputs_outputs`, `host` |
//! | For how long does a call of the store delay the next one? | `calls` |
//! | How are errors, which have no equality, part of a state that is compared? | `carried` |
//! | What does an outcome mean for copies, for sinks, for a lost lease? | `outcomes` |
//! | *and what happens then:* | |
//! | What is claimed, started and renewed next? What do the invocations of this process tell each other? | `launching`, `sharing` |
//! | Which part gets an answer of the store? | `store_answers` |
//! | What follows from the answer to a claim? | `claiming` |
//! | What is written when a handler has ended, and what follows from the answer? | `settling` |
//! | What becomes of a settlement that the store did not apply? | `unsettled` |
//! | What follows when a step of a handler has ended? | `steps` |
//! | What is kept of an attempt where keys only exclude each other? | `mutex` |
//! | Which record was in the way of a completion whose key was not claimed? What follows? | `optimistic` |
//! | What follows from a renewal, and for a handler whose lease is lost? | `lost_leases` |
//! | Which records get the outcome of one? What begins after it? | `finishing` |
//! | Where does a group, or the batch, stop after a failure? | `after_failure` |
//! | How is a record put aside? | `diverting` |
//! | When are the messages of a completion sent, and what if they cannot be? | `publishing` |
//! | When do starts and handlers end? What is then undone, dropped and returned? | `stopping`; called from `mod` and `lost_leases` |
//!
//! The first group are parts: each owns its state and is asked through its methods. The second group are
//! the rules of the machine, which move records from part to part.

mod after_failure;
mod ask;
mod budget;
mod calls;
mod carried;
mod claiming;
mod claims;
mod diverting;
mod entry;
mod finishing;
mod host;
mod inputs_outputs;
mod launching;
mod leases;
mod lost_leases;
mod mutex;
mod optimistic;
mod order;
mod outboxes;
mod outcomes;
mod publishing;
mod quarantine;
mod records;
mod settlements;
mod settling;
mod sharing;
mod starts;
mod steps;
mod stopping;
mod store_answers;
#[cfg(test)]
mod testing;
mod unsettled;
mod waiting;
mod wanted;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Timestamp,
    outcome::{Foreign, NotStarted},
    store::Verdict,
};

pub use self::{
    ask::{Ask, Task},
    calls::CallId,
    carried::Carried,
    host::{Host, Join},
    inputs_outputs::{Action, Collected, Ended, Input, RecordOutcome, Setting},
    outcomes::Why,
};
use self::{
    budget::Budget,
    calls::CallIds,
    claims::Claims,
    entry::Entry,
    leases::{Leases, Terms},
    order::Order,
    outboxes::Outboxes,
    quarantine::Quarantine,
    records::Records,
    settlements::Settlements,
    starts::Starts,
    waiting::Waiting,
};
use crate::{
    rules::{Rule, keeps},
    unanswered::{each, unanswered, unsent},
};

pub(crate) use calls::FIRST_CALL;

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
    waiting: Waiting,
    claims: Claims,
    settlements: Settlements,
    outboxes: Outboxes,
    leases: Leases,
    call_ids: CallIds,
    /// What to do next, in this order.
    actions: VecDeque<Action>,
    /// For how long handlers were polled since all that was to be sent has left.
    polled: Duration,
}

impl<'a> Machine<'a> {
    /// A machine for these records, at the beginning of their invocation.
    pub fn new(
        setting: Setting<'a>,
        asks: impl Iterator<Item = Ask<'a>>,
        now: Timestamp,
        host: &mut dyn Host,
    ) -> Self {
        let records = Records::new(asks);
        let asks = records.all().iter().map(Entry::ask);
        let whole = setting.is_one_after_the_other().then(|| Arc::from(""));
        let mut order =
            Order::new(asks.map(|ask| (ask.key.as_ref(), whole.as_ref().or(ask.group.as_ref()))));
        // In a mutex each of them runs.
        let can_be_copy = |entry: &&Entry<'_>| {
            setting.policy.mode.keeps_completions()
                || entry.ask().is_aside
                || !keeps(Rule::CopiesOfAMutexRun)
        };
        order.find_copies(|at| records.get(at).filter(can_be_copy).map(|entry| entry.ask().same()));
        let end = setting.deadline.unwrap_or_else(|| now.plus(setting.policy.fallback_timeout));
        let budget = Budget::new(now, end);
        // A batch of one, as each call of `run` is, has few at a time.
        let actions = VecDeque::with_capacity(records.all().len().clamp(2, 16));
        let mut machine = Self {
            starts: Starts::new(budget, setting.policy.concurrency, records.all().len()),
            leases: Leases::new(Terms::new(setting.policy, end)),
            setting,
            records,
            order,
            quarantine: Quarantine::default(),
            waiting: Waiting::default(),
            claims: Claims::default(),
            settlements: Settlements::default(),
            outboxes: Outboxes::default(),
            call_ids: CallIds::default(),
            actions,
            polled: Duration::ZERO,
        };
        let present = &mut Present { now, host };
        for (at, receives) in machine.by_receives() {
            machine.begin_if_first(at, receives > 1, present);
        }
        machine
    }

    /// The records in the order in which they begin, with how often they were received.
    fn by_receives(&self) -> Vec<(usize, u32)> {
        let all = self.records.all().iter();
        let mut order: Vec<(usize, u32)> =
            all.map(|entry| entry.ask().receives).enumerate().collect();
        order.sort_by_key(|(_, receives)| std::cmp::Reverse(*receives));
        order
    }

    /// Handles an input.
    pub fn handle(&mut self, input: Input, now: Timestamp, host: &mut dyn Host) {
        let present = &mut Present { now, host };
        match input {
            Input::Read { call, found } => {
                self.read(call, each(found, || Err(unanswered())), present);
            }
            Input::Written { call, writes, verdicts } => {
                let verdicts = each(verdicts, || Verdict::Unknown(unanswered()));
                self.written(call, writes, verdicts, present);
            }
            Input::Sent { call, answers } => {
                self.sent(call, each(answers, || Err(unsent())), present)
            }
            Input::Ended { at, ended, since, polled } => {
                self.polled += polled;
                self.ended(at, ended, since, present);
            }
            Input::Steps { at, steps } => self.steps_ended(at, steps, present),
            Input::Polled { polled } => self.polled += polled,
            Input::LeaderDone { at, record } => self.leader_done(at, record, present),
        }
    }

    /// The next output; `None` if there are no more. Calls that are gathered to be sent together come from
    /// [`rest`](Self::rest).
    pub fn next(&mut self, now: Timestamp, host: &mut dyn Host) -> Option<Action> {
        if self.actions.is_empty() {
            let present = &mut Present { now, host };
            self.stop_overdue(present);
            self.leave_slow(now);
            if self.starts.budget().is_over(now) {
                self.end_claims(present);
            } else {
                self.launch(present);
            }
            self.send_messages(present);
            self.renew(now);
            // Once the response is due, the machine would not see the answer to a write.
            let presses = self.presses(Duration::ZERO) && !self.is_reply_due(now);
            let sent = (presses || self.settlements.is_overdue(now))
                && self.send_settlements(presses, now);
            // What is on its way already has to leave as well.
            if sent || presses {
                self.polled = Duration::ZERO;
                self.actions.push_back(Action::GiveWay);
            }
        }
        self.actions.pop_front()
    }

    /// Whether no further handler may be polled before the machine is asked what to do. `polled` is for how long
    /// handlers were polled since the machine was told last.
    pub fn presses(&self, polled: Duration) -> bool {
        self.polled + polled > LONG_POLL
    }

    /// Nothing else is ready: sends the calls that were gathered, and ends what is due by the clock.
    /// Returns whether there are outputs now.
    pub fn rest(&mut self, now: Timestamp, host: &mut dyn Host) -> bool {
        let present = &mut Present { now, host };
        if self.starts.budget().is_over(now) {
            self.stop(present);
        }
        if self.is_reply_due(now) {
            self.abandon(present);
        }
        self.send_settlements(false, now);
        !self.actions.is_empty()
    }

    fn is_reply_due(&self, now: Timestamp) -> bool {
        now >= self.starts.budget().reply()
    }

    fn send_settlements(&mut self, presses: bool, now: Timestamp) -> bool {
        let call = self.call_ids.next();
        let Some((writes, deadline)) = self.settlements.send(call, presses, now) else {
            return false;
        };
        self.call_ids.sent();
        self.actions.push_back(Action::Write { call, writes, deadline });
        true
    }

    /// When to ask the machine again if nothing happens before.
    pub fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let budget = self.starts.budget();
        let stop = (!self.starts.is_stopped()).then(|| budget.stop());
        let ends = [stop, Some(budget.reply())].into_iter().filter(|_| keeps(Rule::WakesForTheEnd));
        let lease = self.leases.next_due(now).filter(|_| keeps(Rule::WakesForLeases));
        let waiting = self.waiting.next_due().filter(|_| keeps(Rule::WakesWaitingRecords));
        let keeps_others = self.quarantine.is_active() || self.quarantine.is_waiting();
        let slow = self.settlements.next_slow(now).filter(|_| keeps_others);
        let due = [self.settlements.next_due(now), slow, lease, waiting];
        ends.chain(due).flatten().min()
    }

    /// Whether every record has its outcome, and nothing is left to be settled.
    pub fn is_done(&self) -> bool {
        self.records.open() == 0 && self.settlements.is_empty() && self.actions.is_empty()
    }

    /// Describes the other application that owns a key.
    fn foreign(&self, theirs: Arc<str>) -> Foreign {
        Foreign::new(self.setting.operation, theirs, self.setting.application.clone())
    }

    /// Why record `at` will not be started, if that is decided.
    fn closed(&self, at: usize) -> Option<NotStarted> {
        self.starts.closed(self.records.position(at))
    }
}
