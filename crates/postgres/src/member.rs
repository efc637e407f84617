//! One write of a call, and the meaning of an answer.

use lambda_idempotency_core::{
    record::IdempotencyRecord,
    store::{Guard, StoreError, Verdict, Write},
};

use crate::{config::Config, effects::PostgresEffects, error::Failure, limits};

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pub(crate) index: usize,
    pub(crate) write: &'w Write,
    /// What is applied with it, in a transaction of its own.
    pub(crate) effects: Option<&'w PostgresEffects>,
    /// Bytes to send.
    pub(crate) size: usize,
    /// A request had no response, so it may have been applied.
    pub(crate) in_doubt: bool,
    /// It was in a batch that was refused because of some value, or waited for some row, so it is sent by itself.
    pub(crate) alone: bool,
    /// How often its guard failed on a record that was gone or other when it was read.
    pub(crate) lost_attempts: u8,
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
    pub(crate) fn new(
        config: &Config,
        index: usize,
        write: &'w Write,
    ) -> Result<Self, Box<Verdict>> {
        let refused = |error: StoreError| Box::new(Verdict::Unknown(error));
        let effects = match &write.effects {
            None => None,
            Some(effects) => match effects.get::<PostgresEffects>() {
                Some(effects) if write.record.is_some() => Some(effects),
                _ => return Err(refused(StoreError::without_effects(write))),
            },
        };
        let size = limits::fit(config, write).map_err(|failure| refused(failure.report(false)))?;
        let (in_doubt, alone, lost_attempts) = (false, false, 0);
        Ok(Self { index, write, effects, size, in_doubt, alone, lost_attempts })
    }

    /// Whether it must not share a transaction with others.
    pub(crate) const fn is_alone(&self) -> bool {
        self.alone || self.effects.is_some()
    }

    pub(crate) fn key(&self) -> &'w str {
        self.write.key.as_str()
    }

    pub(crate) const fn verb(&self) -> Verb {
        match (&self.write.guard, &self.write.record) {
            (Guard::Absent, Some(_)) => Verb::Insert,
            (Guard::Absent, None) => Verb::Look,
            (Guard::Unchanged(_) | Guard::OwnedBy(_), Some(_)) => Verb::Update,
            (Guard::Unchanged(_) | Guard::OwnedBy(_), None) => Verb::Delete,
        }
    }

    pub(crate) fn unknown(&self, failure: Failure) -> Verdict {
        Verdict::Unknown(failure.report(self.in_doubt))
    }

    /// Whether `found` was written by this write: an earlier request was applied and its response
    /// was lost. The token proves it, because no other write has it.
    pub(crate) fn is_own_work(&self, found: &IdempotencyRecord) -> bool {
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        self.in_doubt && has_token && self.write.record.as_ref() == Some(found)
    }
}
