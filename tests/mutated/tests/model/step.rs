//! One step of one key.

use std::time::Duration;

use lambda_idempotency_core::admission::{Claim, Held};

use crate::{
    packed::{Payload, Token, application_of, at, fingerprint_of, owner_of},
    protocol::Protocol,
    setup::{SKEW, Setup},
    state::{Call, Flaw, KeyWorld},
};

/// A key, the true time, the protocol and the configuration.
pub(crate) struct Step<'a> {
    pub(crate) protocol: Protocol,
    pub(crate) setup: &'a Setup,
    pub(crate) time: u8,
    pub(crate) key: &'a mut KeyWorld,
}

/// How a worker ends a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is acknowledged; with `lost`, although its completion could not be recorded.
    Acknowledged { lost: bool },
    /// It is returned to the source.
    Returned,
    /// It is returned as a permanent failure, so that a dead-letter queue gets it.
    PermanentlyFailed,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        protocol: Protocol,
        setup: &'a Setup,
        time: u8,
        key: &'a mut KeyWorld,
    ) -> Self {
        Self { protocol, setup, time, key }
    }

    /// Notes a broken property, unless this configuration is known to lose it.
    pub(crate) fn blame(&mut self, flaw: Flaw) {
        if !self.setup.lost.contains(&flaw.property()) {
            self.key.flaws.add(flaw);
        }
    }

    /// The claim of a call.
    pub(crate) fn claim_of(&self, call: &Call) -> Claim {
        claim(self.setup, call.token, call.lease, call.payload)
    }

    /// The held claim of a call, for the protocol's functions.
    pub(crate) fn held(&self, call: &Call) -> Held {
        Held { claim: self.claim_of(call), record: call.held.unpack() }
    }
}

/// The claim with this token, for the protocol's functions.
pub(crate) fn claim(setup: &Setup, token: Token, lease: u8, payload: Payload) -> Claim {
    Claim {
        owner: owner_of(token).expect("a claim has a token"),
        lease_until: at(lease),
        retention: seconds(setup.retention),
        clock_skew: seconds(SKEW),
        fingerprint: setup.fingerprints.then(|| fingerprint_of(payload)),
        application: setup.applications.then(|| application_of(payload)),
        provenance: None,
        payload: None,
    }
}

fn seconds(ticks: u8) -> Duration {
    at(ticks).since(at(0))
}
