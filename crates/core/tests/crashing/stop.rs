//! How a worker stops.

use lambda_idempotency_testkit::crashing::Fate;

/// How one invocation is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It is not.
    Never,
    /// Its future is dropped after so many polls; what it had sent and the store had not applied
    /// then has this fate. With [`Fate::Lost`] it was cancelled, otherwise its process is gone and
    /// the network is not.
    Dropped(usize, Fate),
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
    BeforeTheEffect,
    AfterTheEffect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// It waits for what never comes.
    Hangs,
    Panics,
}

impl Stop {
    /// All that can happen to the handler calls of an invocation, the first `calls` of them.
    pub(crate) fn of_handlers(calls: usize) -> Vec<Self> {
        let mut stops = Vec::new();
        for call in 0..calls {
            for pause in [Pause::BeforeTheEffect, Pause::AfterTheEffect] {
                for way in [Way::Hangs, Way::Panics] {
                    stops.push(Self::Handler(Halt { call, pause, way }));
                }
            }
        }
        stops
    }
}
