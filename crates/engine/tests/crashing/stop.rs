//! How a worker stops.

use std::time::Duration;

use lambda_idempotency_testkit::crashing::DelayedWrites;

/// How one invocation is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is not stopped.
    Never,
    /// Its future is dropped after this many polls, and its writes in flight have this fate. With
    /// [`DelayedWrites::Lost`] the invocation was cancelled with them; otherwise its process died and
    /// the network still delivers them.
    Dropped(usize, DelayedWrites),
    /// It is suspended after this many polls, with its writes in flight. It continues this long after the
    /// end of its lease, beside the worker that has taken over.
    Frozen(usize, Duration),
    /// One of its handlers stops.
    Handler(Halt),
}

/// Where and how a handler stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Halt {
    /// The number of the handler call in the invocation, from 0.
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
    /// It never ends.
    Hangs,
    Panics,
    /// The whole process is suspended until the lease has ended, and then continues. Handlers that were
    /// about to start with this one are then too late.
    Freezes,
}

/// All ways to stop.
pub(crate) const WAYS: [Way; 3] = [Way::Hangs, Way::Panics, Way::Freezes];

impl Stop {
    /// Every stop of the first `calls` handler calls of an invocation.
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
