//! One step of one key: what it may read and change.

use std::{marker::PhantomData, time::Duration};

use lambda_idempotency_core::admission::{Claim, Held};

use crate::{
    packed::{Payload, Token, application_of, at, fingerprint_of, owner_of},
    properties::name_of,
    setup::{SKEW, Setup},
    state::{Call, Flaw, KeyWorld},
};

/// A key, the true time, and the rules of the game.
pub(crate) struct Step<'a, P> {
    pub(crate) setup: &'a Setup,
    pub(crate) time: u8,
    pub(crate) key: &'a mut KeyWorld,
    /// Whether the source's order lets a handler of this key start.
    pub(crate) in_order: bool,
    /// Whether the worker is at work on no other key.
    pub(crate) alone: bool,
    /// How the delivery ended, if the step ended it.
    pub(crate) ended: Option<Ended>,
    protocol: PhantomData<P>,
}

/// How a worker is done with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The source may forget it; `lost`: although its completion could not be recorded.
    Acknowledged { lost: bool },
    /// It goes back to the source.
    Returned,
    /// It goes back, and its handler was never started.
    NotStarted,
    /// It goes back as a permanent failure, so that a dead-letter queue gets it.
    PermanentlyFailed,
}

impl<'a, P> Step<'a, P> {
    pub(crate) fn new(setup: &'a Setup, time: u8, key: &'a mut KeyWorld) -> Self {
        Self { setup, time, key, in_order: true, alone: true, ended: None, protocol: PhantomData }
    }

    /// Notes that a rule was broken, unless it is known not to hold in this world.
    pub(crate) fn blame(&mut self, flaw: Flaw) {
        if !self.setup.lost.contains(&name_of(flaw)) {
            self.key.flaws.add(flaw);
        }
    }

    /// What a call claims.
    pub(crate) fn claim_of(&self, call: &Call) -> Claim {
        claim(self.setup, call.token, call.lease, call.payload)
    }

    /// What a worker holds, as the protocol has it.
    pub(crate) fn held(&self, call: &Call) -> Held {
        Held { claim: self.claim_of(call), record: call.held.unpack() }
    }
}

/// The claim with this token, as the protocol has it.
pub(crate) fn claim(setup: &Setup, token: Token, lease: u8, payload: Payload) -> Claim {
    Claim {
        owner: owner_of(token).expect("a claim has a token"),
        lease_until: at(lease),
        retention: seconds(setup.retention),
        clock_skew: seconds(SKEW),
        fingerprint: setup.fingerprints.then(|| fingerprint_of(payload)),
        application: setup.applications.then(|| application_of(payload)),
    }
}

fn seconds(ticks: u8) -> Duration {
    at(ticks).since(at(0))
}
