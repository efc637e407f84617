//! One step of one key: what it may read and change.

use std::{marker::PhantomData, time::Duration};

use lambda_idempotency_core::{
    admission::{Claim, Held, Settlement},
    record::Record,
    store::Guard,
};

use crate::{
    packed::{Cell, Condition, Intent, Request, TEXT, Token, at, owner_of},
    setup::{SKEW, Setup},
    state::{Call, KeyWorld},
};

/// A key, the true time, and the rules of the game.
pub(crate) struct Step<'a, P> {
    pub(crate) setup: &'a Setup,
    pub(crate) time: u8,
    pub(crate) key: &'a mut KeyWorld,
    pub(crate) protocol: PhantomData<P>,
}

impl<'a, P> Step<'a, P> {
    pub(crate) fn new(setup: &'a Setup, time: u8, key: &'a mut KeyWorld) -> Self {
        Self { setup, time, key, protocol: PhantomData }
    }

    /// The claim with this token, as the protocol has it.
    pub(crate) fn claim(&self, token: Token, lease: u8) -> Claim {
        Claim {
            owner: owner_of(token).expect("a claim has a token"),
            lease_until: at(lease),
            retention: seconds(self.setup.retention),
            skew: seconds(SKEW),
            fingerprint: None,
        }
    }

    /// What a worker holds, as the protocol has it.
    pub(crate) fn held(&self, call: &Call) -> Held {
        Held { claim: self.claim(call.token, call.lease), record: call.held.unpack() }
    }
}

fn seconds(ticks: u8) -> Duration {
    at(ticks).since(at(0))
}

impl Request {
    /// Packs what the protocol asks to be written.
    pub(crate) fn new(intent: Intent, by: Token, (guard, record): (Guard, Option<Record>)) -> Self {
        let record = record.as_ref().map(Cell::pack);
        Self { intent, by, guard: Condition::pack(&guard), record }
    }
}

impl Intent {
    /// The settlement that it stands for.
    pub(crate) fn settlement(self) -> Settlement {
        match self {
            Self::Complete => Settlement::Complete { outcome: Some(TEXT.clone().into()) },
            Self::Remember => Settlement::Remember { outcome: None, error: TEXT.clone() },
            Self::Release => Settlement::Release { error: TEXT.clone() },
            Self::PutBack => Settlement::PutBack,
            Self::Renew(until) => Settlement::Renew { lease_until: at(until) },
            Self::Claim => unreachable!("a claim settles nothing"),
        }
    }
}
