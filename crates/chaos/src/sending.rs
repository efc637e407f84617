//! What an order publishes, and an attempt to send one of its messages.

use std::time::Instant;

use crate::{FaultKind, ledger::Step};

/// What goes wrong with the messages of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sending {
    /// How many messages the order publishes.
    pub(crate) messages: usize,
    /// The first attempts to send one of them fail.
    pub(crate) trouble: Option<Trouble>,
    /// The first message of the order waits in the queue for a signal: [`Step::Sending`] or [`Step::Sent`].
    pub(crate) waits: Option<Step>,
}

/// A message that cannot be sent a few times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Trouble {
    /// Which of the order's messages, from 1.
    pub(crate) part: usize,
    pub(crate) kind: FaultKind,
    pub(crate) times: u64,
}

/// An attempt to send a message.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) order: usize,
    /// Which of the order's messages, from 1.
    pub(crate) part: usize,
    pub(crate) id: String,
    pub(crate) pid: u32,
    pub(crate) answer: Answer,
    /// Whether the order was placed at that moment, where effects are in transactions.
    pub(crate) placed: Option<bool>,
    pub(crate) at: Instant,
}

/// What the queue did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Taken,
    /// It has taken the message, and the sender did not get to know that in time.
    Unanswered,
    Refused,
    /// It waits for the end of the sender's process, and has not taken the message.
    Held,
}

impl Answer {
    pub(crate) const fn is_taken(self) -> bool {
        matches!(self, Self::Taken | Self::Unanswered)
    }
}
