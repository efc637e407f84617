//! What happened, and what must not: everything that is checked while a story goes on.

mod calls;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use lambda_idempotency_core::{
    clock::Timestamp,
    outbox::OutgoingMessage,
    outcome::Outcome,
    record::{IdempotencyRecord, Status},
};
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::ledger::Ledger;

pub(crate) use self::calls::Running;
use self::calls::Started;
use crate::{
    message::{Message, key},
    source::Gone,
};

/// The log of one story. Clones share it.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) ledger: Ledger,
    state: Arc<Mutex<State>>,
}

struct State {
    messages: Vec<Message>,
    /// Whether handlers publish messages.
    publishes: bool,
    sent: Sent,
    calls: Vec<Started>,
    /// What is final in the store: which key, by which fence.
    landed: Vec<(&'static str, u64, Status)>,
    /// Until when keys are held: by which fence.
    leases: BTreeMap<(&'static str, u64), Timestamp>,
    /// The keys of which a record with steps has landed.
    steps: BTreeSet<&'static str>,
    /// How often the step of each key ran.
    step_runs: BTreeMap<&'static str, usize>,
    /// The losses in a row of each key, counted by what lands.
    losses: BTreeMap<&'static str, Losses>,
    /// What went back, behind which nothing of its group may start: its invocation, its group.
    closed: Vec<(usize, Option<&'static str>)>,
    gone: Vec<(usize, Gone)>,
    stops: u32,
    dropped: usize,
    violations: BTreeSet<String>,
    notes: Option<Vec<String>>,
    /// Whether handlers run without a claim: then several may run for a key, and are not result of each other.
    is_optimistic: bool,
}

impl Log {
    pub(crate) fn new(messages: Vec<Message>, publishes: bool, noted: bool) -> Self {
        let state = State {
            messages,
            publishes,
            sent: Sent::new(),
            calls: Vec::new(),
            landed: Vec::new(),
            leases: BTreeMap::new(),
            steps: BTreeSet::new(),
            step_runs: BTreeMap::new(),
            losses: BTreeMap::new(),
            closed: Vec::new(),
            gone: Vec::new(),
            stops: 0,
            dropped: 0,
            violations: BTreeSet::new(),
            notes: noted.then(Vec::new),
            is_optimistic: false,
        };
        Self { ledger: Ledger::new(), state: Arc::new(Mutex::new(state)) }
    }

    /// Handlers run with or without a claim.
    pub(crate) fn optimistic(self, is_optimistic: bool) -> Self {
        self.lock().is_optimistic = is_optimistic;
        self
    }

    /// The engine has decided about a delivery.
    pub(crate) fn settled(&self, invocation: usize, id: usize, outcome: &Outcome) {
        let mut state = self.lock();
        let Message { label, group, .. } = state.messages[id];
        state.note(|| format!("  {label} is settled: {outcome:?}"));
        if outcome.is_acknowledged() {
            return;
        }
        state.closed.push((invocation, group));
        if matches!(outcome, Outcome::TimedOut { .. }) {
            state.timed_out(invocation, label);
        }
    }

    /// The store has applied a write.
    pub(crate) fn landed(&self, at: &Key, record: Option<&IdempotencyRecord>) {
        self.note(|| format!("  {at:?} becomes {record:?}"));
        let mut state = self.lock();
        let (label, _) = keys(&state.messages).into_iter().find(|(_, key)| key == at).unwrap();
        if !state.losses.entry(label).or_default().landed(record) {
            state.violations.insert(format!("{label} does not say how many losses came in a row"));
        }
        let has_steps = record.is_some_and(|record| record.steps.is_some());
        let is_final = record.is_some_and(|record| record.status != Status::InProgress);
        if has_steps {
            state.steps.insert(label);
        } else if state.steps.contains(label) && !is_final {
            state.violations.insert(format!("{label} is written without its steps"));
        }
        let Some(record) = record else { return };
        let (fence, status) = (record.fence, record.status);
        if status == Status::InProgress {
            state.leases.extend(record.lease_until.map(|lease| ((label, fence), lease)));
            return;
        }
        // The completion once more, without its messages.
        let is_mark = state.publishes && state.landed.contains(&(label, fence, status));
        if is_mark {
            if record.outbox.is_some() || !state.are_sent(label) {
                state.violations.insert(format!("{label} is marked before its messages arrived"));
            }
            return;
        }
        if state.is_final(label) {
            state.violations.insert(format!("{label} is settled permanently a second time"));
        }
        let had_effect = |c: &Started| c.label == label && c.fence == fence && c.had_effect;
        if status == Status::Completed && !state.calls.iter().any(had_effect) {
            state.violations.insert(format!("{label} is recorded as done without its effect"));
        }
        state.landed.push((label, fence, status));
    }

    /// An invocation answered.
    pub(crate) fn answered(&self, batch: &[Message], acknowledged: &[bool]) {
        let mut state = self.lock();
        for (at, message) in batch.iter().enumerate() {
            let held_up = |(other, acknowledged): (&Message, &bool)| {
                message.group.is_some() && other.group == message.group && !acknowledged
            };
            if acknowledged[at] && batch.iter().zip(&acknowledged[..at]).any(held_up) {
                let label = message.label;
                state
                    .violations
                    .insert(format!("{label} is acknowledged before what is before it"));
            }
        }
    }

    /// An invocation was stopped, and with it all its calls.
    pub(crate) fn died(&self, invocation: usize) {
        let mut state = self.lock();
        state.stops += 1;
        state.dropped += 1;
        state.note(|| format!("  invocation {invocation} is dropped"));
        for call in state.calls.iter_mut().filter(|call| call.invocation == invocation) {
            call.stopped = true;
        }
    }

    /// An invocation was frozen: its calls do not run, for now.
    pub(crate) fn frozen(&self, invocation: usize) {
        self.died(invocation);
        let mut state = self.lock();
        for call in state.calls.iter_mut().filter(|call| call.invocation == invocation) {
            call.runs = false;
        }
    }

    /// The process was, with all that runs in it.
    pub(crate) fn stood_still(&self) {
        let mut state = self.lock();
        state.stops += 1;
        state.note(|| "  everything stands still".to_owned());
        for call in &mut state.calls {
            call.stopped = true;
        }
    }

    /// The source has forgotten a message.
    pub(crate) fn gone(&self, message: &Message, gone: Gone) {
        let mut state = self.lock();
        let Message { label, id, .. } = *message;
        match gone {
            Gone::Acknowledged => {
                self.ledger.acknowledged(label);
                let may_go = |(landed, _, status): &(&str, u64, Status)| {
                    *landed == label && *status == Status::Completed
                };
                let done = state.landed.iter().any(may_go);
                if state.publishes && !state.are_sent(label) {
                    state
                        .violations
                        .insert(format!("{label} is acknowledged before its messages arrived"));
                }
                if !done {
                    state.violations.insert(format!("{label} is acknowledged and not done: lost"));
                }
            }
            Gone::DeadLettered => self.ledger.dead_lettered(label),
        }
        state.gone.push((id, gone));
    }

    /// At the end: each effect is recorded, or its call was stopped before it could be. Effects that are
    /// `committed` are recorded in any case, and happen once.
    pub(crate) fn check_effects(&self, committed: bool) {
        let mut state = self.lock();
        let mut wrong = Vec::new();
        if committed && !self.ledger.doubled().is_empty() {
            wrong.push(format!("committed twice: {:?}", self.ledger.doubled()));
        }
        let counts = |call: &&Started| call.had_effect && (committed || !call.stopped);
        for call in state.calls.iter().filter(counts) {
            let recorded = (call.label, call.fence, Status::Completed);
            if !state.landed.contains(&recorded) {
                let label = call.label;
                wrong.push(format!(
                    "{label} had an effect that is not recorded, and no worker died"
                ));
            }
        }
        let stepping = state.messages.iter().filter(|message| message.has_step);
        let is_done = |label| {
            let mut landed = state.landed.iter();
            landed.any(|(landed, _, status)| *landed == label && *status == Status::Completed)
        };
        let without = stepping.filter(|message| {
            is_done(message.label) && !state.step_runs.contains_key(message.label)
        });
        wrong.extend(without.map(|message| format!("{} is done without its step", message.label)));
        state.violations.extend(wrong);
    }

    /// How many steps ran more than once.
    pub(crate) fn repeated_steps(&self) -> usize {
        self.lock().step_runs.values().filter(|runs| **runs > 1).count()
    }

    /// The messages that the source gave up.
    pub(crate) fn given_up(&self) -> Vec<usize> {
        let state = self.lock();
        let dead = state.gone.iter().filter(|(_, gone)| *gone == Gone::DeadLettered);
        dead.map(|(id, _)| *id).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The messages whose handlers had no time left.
    pub(crate) fn timed_out(&self) -> Vec<usize> {
        let state = self.lock();
        let timed_out =
            |m: &&Message| state.calls.iter().any(|c| c.timed_out && c.label == m.label);
        state.messages.iter().filter(timed_out).map(|message| message.id).collect()
    }

    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        self.lock().note(what);
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        self.lock().notes.clone().unwrap_or_default()
    }

    pub(crate) fn violation(&self, what: String) {
        self.lock().violations.insert(what);
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.lock().violations.iter().cloned().collect()
    }

    /// How many stops have struck.
    pub(crate) fn stops(&self) -> u32 {
        self.lock().stops
    }

    /// How many invocations were dropped or frozen.
    pub(crate) fn dropped(&self) -> usize {
        self.lock().dropped
    }

    /// How many calls learnt of a lost attempt.
    pub(crate) fn calls_after_losses(&self) -> usize {
        self.lock().calls.iter().filter(|call| call.lost_attempts > 0).count()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(what());
        }
    }

    /// A takeover may come so late that no time is left for the handler: that is a stop, too.
    fn timed_out(&mut self, invocation: usize, label: &str) {
        let mine = |c: &&mut Started| c.invocation == invocation && c.label == label && !c.stopped;
        for call in self.calls.iter_mut().filter(mine) {
            (call.stopped, call.timed_out) = (true, true);
            self.stops += 1;
        }
    }

    fn is_final(&self, label: &str) -> bool {
        self.landed.iter().any(|(landed, ..)| *landed == label)
    }

    /// Whether all before message `id` of its group are done or given up.
    fn is_next(&self, group: Option<&str>, id: usize, label: &str) -> bool {
        let before = self.messages.iter().take(id);
        before.filter(|other| other.group == group && other.label != label).all(|other| {
            self.is_final(other.label) || self.gone.iter().any(|(gone, _)| *gone == other.id)
        })
    }
}

/// The keys of some messages, each once.
pub(crate) fn keys(messages: &[Message]) -> Vec<(&'static str, Key)> {
    let labels: BTreeSet<_> = messages.iter().map(|message| message.label).collect();
    labels.into_iter().map(|label| (label, key(label))).collect()
}

/// The attempts of a key that were lost, one after the other.
#[derive(Default)]
struct Losses {
    /// The fence of a claim that was not given up, and how many attempts of the key are over then.
    claim: Option<(u64, u32)>,
    in_a_row: u32,
}

impl Losses {
    /// Of what is known under this fence.
    fn of(&self, fence: u64) -> u32 {
        self.claim.filter(|(claim, _)| *claim == fence).map_or(0, |_| self.in_a_row)
    }

    /// Counts a write. Says whether the record has the same number.
    fn landed(&mut self, record: Option<&IdempotencyRecord>) -> bool {
        let Some(record) = record.filter(|record| record.status == Status::InProgress) else {
            *self = Self::default();
            return true;
        };
        let over = record.failed_attempts + record.lost_attempts;
        match self.claim {
            _ if record.owner.is_none() => {
                let tried = self.claim.is_some_and(|(_, before)| over > before);
                (self.claim, self.in_a_row) = (None, if tried { 0 } else { self.in_a_row });
            }
            Some((fence, _)) if fence == record.fence => {}
            lost => {
                self.in_a_row += u32::from(lost.is_some());
                self.claim = Some((record.fence, over));
            }
        }
        record.consecutive_losses == self.in_a_row
    }
}

/// How many messages each handler publishes.
pub(crate) const PUBLISHED: usize = 2;

/// The id of each message that has arrived, by the label of its record and its position.
type Sent = BTreeMap<(String, usize), String>;

/// The body of a message.
pub(crate) fn body(label: &str, position: usize) -> String {
    format!("{label}:{position}")
}

impl Log {
    /// A message has arrived.
    pub(crate) fn arrived(&self, message: &OutgoingMessage) {
        let mut state = self.lock();
        let (label, position) = message.message().body().split_once(':').unwrap();
        let position: usize = position.parse().unwrap();
        state.note(|| format!("  message {position} of {label} arrives"));
        let is_completed =
            state.landed.iter().any(|(at, _, status)| *at == label && *status == Status::Completed);
        let mut wrong = Vec::new();
        if !is_completed {
            wrong.push("before its completion");
        }
        let in_order =
            (0..position).all(|before| state.sent.contains_key(&(label.to_owned(), before)));
        if !in_order {
            wrong.push("before the message before it");
        }
        let id = state.sent.entry((label.to_owned(), position)).or_default();
        if id.is_empty() {
            message.id().clone_into(id);
        } else if id != message.id() {
            wrong.push("again with another id");
        }
        let wrong = wrong.into_iter();
        state
            .violations
            .extend(wrong.map(|how| format!("message {position} of {label} arrives {how}")));
    }
}

impl State {
    /// Whether all messages of a record have arrived.
    fn are_sent(&self, label: &str) -> bool {
        (0..PUBLISHED).all(|position| self.sent.contains_key(&(label.to_owned(), position)))
    }
}
