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
//! Each record is a state machine of its own: it is in an `record::Stage`, and what happens to it is a
//! `rule::Event`. `table` says which rule handles which event in which stage. A rule is a function of one record
//! (a `rule::Step`) that returns what becomes of it (a `rule::Next`); it sees neither the machine nor other
//! records. The loop of the table enters the stage, and continues with what follows for others until nothing is left.
//! The stage says in which list a record is, and only `lists` changes either.
//!
//! | question | file |
//! |---|---|
//! | *A record* | |
//! | What is asked for with it? Which records ask for the same? | `ask` |
//! | Which stages are there? What is known of the record? | `record`; all of them are the `records` |
//! | What can happen to it, and what does a rule see of it? | `rule` |
//! | Which rule handles that? | `table` |
//! | In which list is it? | `lists` |
//! | *Rules, for one record* | |
//! | What follows when it begins, and from the answer to its claim? | `claim` |
//! | What does its turn to be claimed begin with? What does this process know already? | `sharing` |
//! | What follows when its handler has ended or is stopped? | `handlers` |
//! | What is written then? | `settle` |
//! | What follows from the answer? | `settled`; without a claim `optimistic`, and `unsettled` if it was not applied |
//! | When are the messages of a completion sent, and what if they cannot be? | `messages` |
//! | What follows from a renewal, and when the lease is lost? | `lost_leases` |
//! | What follows when a step of its handler has ended? | `steps` |
//! | *The machine, for all records* | |
//! | What is looked at, claimed and started next? | `launching` |
//! | What is sent next? Whom does an answer concern? | `sending`, `store_answers` |
//! | Which records get the outcome of one, stop or begin after it? | `ending` |
//! | When do starts and handlers end? | `stopping` |
//! | *Parts, which own their state* | |
//! | Which record is next in its key and its group? Which records are copies? | `order` |
//! | Is there time for this: a start, a claim, a settlement? When is the stop? | `budget` |
//! | What may be looked at, claimed and started now? Is the end of starts reached? | `schedule` |
//! | Which records may have killed the process? Which of them run together, and in which order? | `quarantine` |
//! | Which records wait for a busy key? | `waiting` |
//! | What does a record want of its key, and which answers are there? | `wanted` |
//! | Which claims are on their way? When is one in doubt asked again, and when undone? | `claims` |
//! | Which settlements are to be sent, when, and for how long are they tried? | `settlements` |
//! | Which messages are to be sent, which were handed to the sender? | `outboxes` |
//! | How long is a key held? Which leases are to be renewed, which have lapsed? | `lease` |
//! | For how long does a call of the store delay the next one? | `calls` |
//! | What goes in and what comes out? | `io`, `host` |
//! | How are errors, which have no equality, part of a state that is compared? | `carried` |
//! | Which outcome follows from a result, an error or a stored record? | `outcome` |

mod ask;
mod budget;
mod calls;
mod carried;
mod claim;
mod claims;
mod ending;
mod handlers;
mod host;
mod io;
mod launching;
mod lease;
mod lists;
mod lost_leases;
mod messages;
mod optimistic;
mod order;
mod outboxes;
mod outcome;
mod quarantine;
mod record;
mod records;
mod rule;
mod schedule;
mod sending;
mod settle;
mod settled;
mod settlements;
mod sharing;
mod steps;
mod stopping;
mod store_answers;
mod table;
#[cfg(test)]
mod testing;
mod unsettled;
mod waiting;
mod wanted;

use std::{collections::VecDeque, time::Duration};

use lambda_idempotency_core::{clock::Timestamp, store::Verdict};

pub use self::{
    ask::{Ask, Task},
    calls::CallId,
    carried::Carried,
    host::Host,
    io::{Action, Collected, Ended, Input, RecordOutcome, Setting},
};
use self::{
    budget::Budget,
    calls::CallIds,
    claims::Claims,
    lease::{Leases, Terms},
    order::Order,
    outboxes::Outboxes,
    quarantine::Quarantine,
    record::Entry,
    records::Records,
    rule::Event,
    schedule::Starts,
    settlements::Settlements,
    waiting::Waiting,
};
use crate::unanswered::{each, unanswered, unsent};

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
        let mut order = Order::new(asks.map(|ask| (ask.key.as_ref(), ask.group.as_ref())));
        // In a mutex each of them runs.
        if setting.policy.mode.keeps_completions() {
            order.find_copies(|at| records.get(at).map(|entry| entry.ask().same()));
        }
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
            machine.run(at, Event::Begin { looks: receives > 1 }, present);
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
                self.run(at, Event::Ended(ended, since), present);
            }
            Input::Steps { at, steps } => {
                self.run(at, Event::Steps(steps), present);
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
            if self.starts.budget().is_over(now) {
                self.end_claims(present);
            } else {
                self.launch(present);
            }
            self.send_messages(now);
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
        debug_assert!(self.lists_follow(), "a record is in the list of another stage");
        !self.actions.is_empty()
    }

    fn is_reply_due(&self, now: Timestamp) -> bool {
        now >= self.starts.budget().reply()
    }

    /// When to ask the machine again if nothing happens before.
    pub fn wake(&self, now: Timestamp) -> Option<Timestamp> {
        let budget = self.starts.budget();
        let stop = (!self.starts.is_stopped()).then(|| budget.stop());
        let ends = [stop, Some(budget.reply())].into_iter();
        let lease = self.leases.next_due(now);
        let waiting = self.waiting.next_due();
        let keeps_others = self.quarantine.is_active() || self.quarantine.is_waiting();
        let slow = self.settlements.next_slow(now).filter(|_| keeps_others);
        let due = [self.settlements.next_due(now), slow, lease, waiting];
        ends.chain(due).flatten().min()
    }

    /// Whether every record has its outcome, and nothing is left to be settled.
    pub fn is_done(&self) -> bool {
        self.records.open() == 0 && self.settlements.is_empty() && self.actions.is_empty()
    }
}
