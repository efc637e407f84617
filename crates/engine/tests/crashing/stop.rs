//! How a worker stops.

use std::time::Duration;

use lambda_idempotency_testkit::crashing::DelayedWrites;

/// How one invocation is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is not.
    Never,
    /// Its future is dropped after so many polls; what it had sent and the store had not applied
    /// then has this fate. With [`DelayedWrites::Lost`] it was cancelled, otherwise its process is gone and
    /// the network is not.
    Dropped(usize, DelayedWrites),
    /// It is frozen after so many polls: nobody hears of it, and it goes on when its lease has ended
    /// and this much has passed, beside whoever has taken over. What it had sent waits with it.
    Frozen(usize, Duration),
    /// One of its handlers stops.
    Handler(Halt),
}

/// Where and how a handler stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Halt {
    /// The how manieth call of a handler in the invocation, from 0.
    pub(crate) call: usize,
    pub(crate) pause: Pause,
    pub(crate) way: Way,
}

/// The awaits of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    AtFirst,
    BeforeTheEffect,
    AfterTheEffect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It waits for what never comes.
    Hangs,
    Panics,
    /// The whole process does, until the lease has ended, and then goes on right there: handlers that
    /// were let go with this one, and have not begun, are late.
    Freezes,
}

/// The ways.
pub(crate) const WAYS: [Way; 3] = [Way::Hangs, Way::Panics, Way::Freezes];

impl Stop {
    /// All that can happen to the handler calls of an invocation, the first `calls` of them.
    pub(crate) fn of_handlers(calls: usize) -> Vec<Self> {
        let mut stops = Vec::new();
        for call in 0..calls {
            for pause in [Pause::AtFirst, Pause::BeforeTheEffect, Pause::AfterTheEffect] {
                for way in WAYS {
                    stops.push(Self::Handler(Halt { call, pause, way }));
                }
            }
        }
        stops
    }
}
