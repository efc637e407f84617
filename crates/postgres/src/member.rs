//! One write of a call, and the meaning of an answer.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use lambda_idempotency_core::{
    retry::PendingWrite,
    store::{Guard, StoreError},
};

use crate::{config::Config, effects::PostgresEffects, limits, retry::Budget};

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pending: PendingWrite<'w>,
    /// What is applied with it, in a transaction of its own.
    pub(crate) effects: Option<&'w PostgresEffects>,
    /// Bytes to send.
    pub(crate) size: usize,
    /// It was in a batch that was refused because of some value, or waited for some row, so it is sent by itself.
    pub(crate) alone: bool,
    /// How often its guard failed on a record that was gone or other when it was read.
    pub(crate) lost_attempts: u8,
    /// An effect took longer than a request, so the next one has all the time of the call.
    pub(crate) is_slow: bool,
    /// Why the server gave up its effects the last time.
    pub(crate) given_up: Option<GivenUp>,
}

/// Which effect failed, none at `COMMIT`, and with which SQLSTATE.
#[derive(PartialEq, Eq)]
pub(crate) struct GivenUp {
    pub(crate) position: Option<usize>,
    pub(crate) code: String,
}

/// What a write is to the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Insert,
    Update,
    Delete,
    /// Nothing is to be written, whatever is there.
    Look,
}

impl<'w> Member<'w> {
    /// The write, or its verdict if it cannot be sent.
    pub(crate) fn new(config: &Config, pending: PendingWrite<'w>) -> Result<Self, StoreError> {
        let write = pending.write;
        let effects = match &write.effects {
            None => None,
            Some(effects) => match effects.get::<PostgresEffects>() {
                Some(effects) if write.record.is_some() => Some(effects),
                _ => return Err(StoreError::without_effects(write)),
            },
        };
        let size = limits::fit(config, write).map_err(|failure| failure.report(false))?;
        Ok(Self {
            pending,
            effects,
            size,
            alone: false,
            lost_attempts: 0,
            is_slow: false,
            given_up: None,
        })
    }

    /// Whether it must not share a transaction with others.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone || self.effects.is_some()
    }

    /// How long its next request may take, if it has effects.
    pub(crate) fn commit_limit(&self, budget: &Budget<'_>) -> Duration {
        if self.is_slow { budget.left() } else { budget.limit() }
    }

    pub(crate) fn key(&self) -> &'w str {
        self.write.key.as_str()
    }

    pub(crate) fn verb(&self) -> Verb {
        match (&self.write.guard, &self.write.record) {
            (Guard::Absent, Some(_)) => Verb::Insert,
            (Guard::Absent, None) => Verb::Look,
            (Guard::Unchanged(_) | Guard::OwnedBy(_), Some(_)) => Verb::Update,
            (Guard::Unchanged(_) | Guard::OwnedBy(_), None) => Verb::Delete,
        }
    }
}

impl<'w> Deref for Member<'w> {
    type Target = PendingWrite<'w>;

    fn deref(&self) -> &Self::Target {
        &self.pending
    }
}

impl DerefMut for Member<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.pending
    }
}
