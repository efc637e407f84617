//! A state of the world.

use std::sync::Arc;

use crate::core::{
    admission::Held,
    clock::Timestamp,
    key::Key,
    outbox::OutgoingMessage,
    record::{IdempotencyRecord, Owner},
    store::Write,
};

use crate::{
    machine::{CallId, Machine},
    setup::{SKEW, START, Setup},
    store::claim,
};

/// The whole world at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The true time.
    pub(crate) now: Timestamp,
    pub(crate) faults: Faults,
    /// By key.
    pub(crate) store: Vec<Option<IdempotencyRecord>>,
    /// Writes whose senders no longer wait for them, and when they were lost.
    pub(crate) strays: Vec<(Write, Timestamp)>,
    pub(crate) processes: Vec<Process>,
    pub(crate) invocations: Vec<Invocation>,
    /// The number of invocations so far.
    pub(crate) begun: u32,
    pub(crate) source: Vec<Delivery>,
    /// By key: the payloads for which a handler returned Ok.
    pub(crate) effects: Vec<Payloads>,
    /// By message, if keys only exclude each other: whether its handler returned Ok.
    pub(crate) ran: Vec<bool>,
    /// By key: how often effects were committed, where they are.
    pub(crate) committed: Vec<u8>,
    /// By key: whether a handler went on after its step, because the store has the result.
    pub(crate) steps_relied_on: Vec<bool>,
    /// By key: which of its messages have arrived.
    pub(crate) sent: Vec<Payloads>,
    /// By key: until when the effect of a stopped handler may still happen.
    pub(crate) lingering: Vec<Timestamp>,
    /// By key: how often its handler died because of another key's handler.
    pub(crate) harmed: Vec<u8>,
    /// By key: the fence of the last handler that was started.
    pub(crate) fences: Vec<u64>,
    /// By key: whether a record in progress was swept while copies of writes were in flight: the counts of attempts were
    /// lost with it.
    pub(crate) forgotten: Vec<bool>,
    /// By key: whether a completion was swept, or overwritten by Powertools.
    pub(crate) gone: Vec<bool>,
    /// The function that uses Powertools, while its handler runs.
    pub(crate) stranger: Option<Stranger>,
    /// The properties that the last step broke; nothing happens after that.
    pub(crate) broken: Vec<&'static str>,
}

/// How many faults may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    /// A process dies with all its invocations.
    pub(crate) deaths: u8,
    /// A call, or one member of it, gets no answer. It is applied in this instant or never.
    pub(crate) losses: u8,
    /// A write without an answer is applied at a later instant.
    pub(crate) late: u8,
    /// The store throttles a call.
    pub(crate) refusals: u8,
    /// Time passes while calls are in flight.
    pub(crate) delays: u8,
    /// A handler reports failure.
    pub(crate) errors: u8,
    /// A handler does not end by itself.
    pub(crate) hangs: u8,
    /// A clock steps, within the clock skew.
    pub(crate) steps: u8,
}

/// A set of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Payloads(u8);

impl Payloads {
    pub(crate) const fn add(&mut self, payload: usize) {
        self.0 |= 1 << payload;
    }

    pub(crate) const fn contains(self, payload: usize) -> bool {
        self.0 & (1 << payload) != 0
    }

    pub(crate) const fn any(self) -> bool {
        self.0 != 0
    }
}

/// The state that the invocations of a process share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Process {
    /// Whether its clock is ahead by the clock skew.
    pub(crate) is_ahead: bool,
    /// By key: the completed record that was seen.
    pub(crate) completed: Vec<Option<Arc<IdempotencyRecord>>>,
}

impl Process {
    fn new(keys: usize) -> Self {
        Self { is_ahead: false, completed: vec![None; keys] }
    }

    /// Everything in memory is lost; the clock is the machine's.
    pub(crate) fn restart(&mut self) {
        let is_ahead = self.is_ahead;
        *self = Self { is_ahead, ..Self::new(self.completed.len()) };
    }
}

/// An invocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Invocation {
    pub(crate) machine: Machine<'static>,
    pub(crate) own: Own,
}

/// An invocation without its machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Own {
    pub(crate) number: u32,
    pub(crate) process: usize,
    /// When it ends, in true time.
    pub(crate) ends: Option<Timestamp>,
    /// When its machine is to be woken, in true time.
    pub(crate) wakes: Option<Timestamp>,
    /// The number of tokens that it has given out.
    pub(crate) tokens: u32,
    /// Its records, by their places in the source.
    pub(crate) records: Vec<usize>,
    pub(crate) outcomes: Vec<Option<Fate>>,
    pub(crate) calls: Vec<Call>,
    pub(crate) running: Vec<Running>,
    /// Whether a completion of it was lost.
    pub(crate) lost_completion: bool,
    /// Whether a call of the store failed.
    pub(crate) was_failed: bool,
    /// Whether its clock has stepped ahead since its machine was asked.
    pub(crate) has_stepped: bool,
    /// Whether its response was due when its machine was first asked after such a step: it has no time for
    /// settlements.
    pub(crate) has_no_time: bool,
}

/// A call of the store or of the sender without an answer so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) request: Request,
    /// In true time.
    pub(crate) deadline: Timestamp,
    /// Whether its deadline had passed when it was sent, so that the store refuses it.
    pub(crate) is_late: bool,
    /// The answer of the store, if it is on its way: for each member that was not written, the record that was found.
    pub(crate) answer: Option<Vec<Option<Option<IdempotencyRecord>>>>,
}

impl Call {
    /// A call that a process sends, with a deadline by its clock.
    pub(crate) fn new(
        world: &World,
        process: usize,
        id: CallId,
        request: Request,
        deadline: Timestamp,
    ) -> Self {
        let deadline = world.truly(process, deadline);
        Self { id, request, deadline, is_late: deadline <= world.now, answer: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    Read(Vec<Key>),
    Write(Vec<Write>),
    Send(Vec<OutgoingMessage>),
}

impl Request {
    /// Whether this key is looked at or claimed.
    pub(crate) fn asks_for(&self, key: &Key) -> bool {
        match self {
            Self::Read(keys) => keys.contains(key),
            Self::Write(writes) => {
                writes.iter().any(|write| write.key == *key && claim(write).is_some())
            }
            Self::Send(_) => false,
        }
    }
}

/// A handler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Running {
    pub(crate) at: usize,
    pub(crate) held: Option<Arc<Held>>,
    /// Until when its worker knows that it holds the key.
    pub(crate) lease: Option<Timestamp>,
    /// By its process's clock.
    pub(crate) since: Timestamp,
    /// When it ends at the latest, in true time; `None` if it hangs.
    pub(crate) due: Option<Timestamp>,
    pub(crate) step: Step,
}

/// A function that uses Powertools, whose handler works on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stranger {
    pub(crate) message: usize,
    pub(crate) lease: Timestamp,
}

/// The step of a handler, in worlds with steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// It was not called in this attempt.
    Before,
    /// It has ended, and waits for the store.
    Ended,
    /// The store has its result, of this attempt or of one before.
    Stored,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Delivery {
    /// How often it was received.
    pub(crate) receives: u8,
    /// How often of these since the last fault.
    pub(crate) since_fault: u8,
    pub(crate) place: Place,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// With its source, which delivers it from this instant on.
    Source(Timestamp),
    /// In an invocation; if it is not acknowledged, it is visible again from this instant on.
    InFlight(Timestamp),
    Acknowledged,
    /// Failed permanently: for the dead-letter queue.
    Permanent,
}

/// What an outcome means for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Acknowledged,
    Returned,
    Permanent,
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let now = START;
        let keys = setup.keys.len();
        let delivery = Delivery { receives: 0, since_fault: 0, place: Place::Source(now) };
        Self {
            now,
            faults: setup.faults,
            store: vec![None; keys],
            strays: Vec::new(),
            processes: vec![Process::new(keys); setup.processes],
            invocations: Vec::new(),
            begun: 0,
            source: vec![delivery; setup.messages.len()],
            effects: vec![Payloads::default(); keys],
            ran: vec![false; setup.messages.len()],
            committed: vec![0; keys],
            steps_relied_on: vec![false; keys],
            sent: vec![Payloads::default(); keys],
            lingering: vec![Timestamp::EPOCH; keys],
            harmed: vec![0; keys],
            fences: vec![0; keys],
            forgotten: vec![false; keys],
            gone: vec![false; keys],
            stranger: None,
            broken: Vec::new(),
        }
    }

    /// What the clock of a process reads.
    pub(crate) fn clock(&self, process: usize) -> Timestamp {
        if self.processes[process].is_ahead { self.now.plus(SKEW) } else { self.now }
    }

    /// When the clock of a process reads `instant`, in true time.
    pub(crate) fn truly(&self, process: usize, instant: Timestamp) -> Timestamp {
        if self.processes[process].is_ahead { instant.minus(SKEW) } else { instant }
    }

    /// Restarts the count of receives, after a fault.
    pub(crate) fn fault(&mut self) {
        for delivery in &mut self.source {
            delivery.since_fault = 0;
        }
    }

    /// Notes a property that is broken.
    pub(crate) fn blame(&mut self, property: &'static str) {
        self.broken.push(property);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.source
            .iter()
            .all(|delivery| matches!(delivery.place, Place::Acknowledged | Place::Permanent))
    }
}

impl Own {
    /// A token that no other claim has.
    pub(crate) fn token(&mut self) -> Owner {
        self.tokens += 1;
        Owner::from_bits(u128::from(self.number) << 32 | u128::from(self.tokens))
    }
}
