//! One write of a call: the command to send, and the meaning of its answer.

use lambda_idempotency_core::{
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, StoreError, Verdict, Write},
};
use redis::Cmd;

use crate::{
    address::Address, batch::Request, config::Config, error::Failure, guard, item, limits,
};

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pub(crate) index: usize,
    pub(crate) write: &'w Write,
    /// The fields to store; `None` deletes.
    fields: Option<item::Fields>,
    size: usize,
    /// A request had no response, so it may have been applied.
    pub(crate) in_doubt: bool,
    /// The server has it, and too few replicas. It is written again, over itself, until they have it.
    pub(crate) unconfirmed: bool,
    /// The server that is receiving the record.
    pub(crate) go_to: Option<Address>,
}

impl<'w> Member<'w> {
    /// The write, or its verdict if it cannot be sent.
    pub(crate) fn new(config: &Config, index: usize, write: &'w Write) -> Result<Self, StoreError> {
        if write.effects.is_some() {
            return Err(StoreError::without_effects(write));
        }
        let fields = write.record.as_ref().map(item::encode);
        let size = fields.as_ref().map_or(Ok(0), |fields| limits::fit(config, fields));
        let size = size.map_err(|failure| failure.report(false))?;
        let (in_doubt, unconfirmed, go_to) = (false, false, None);
        Ok(Self { index, write, fields, size, in_doubt, unconfirmed, go_to })
    }

    /// What to send.
    pub(crate) fn request(&mut self, config: &Config) -> Request {
        let name = config.name(&self.write.key);
        let guard = match &self.write.record {
            Some(record) if self.unconfirmed => Guard::Unchanged(RecordVersion::of(record)),
            _ => self.write.guard.clone(),
        };
        let settles =
            matches!(guard, Guard::OwnedBy(_)) || self.fields.is_none() || self.unconfirmed;
        let script = if settles { &config.scripts.settle } else { &config.scripts.claim };
        let mut command = Cmd::new();
        command.arg("EVALSHA").arg(&script.hash).arg(1).arg(&name);
        for argument in guard::arguments(&guard) {
            command.arg(argument);
        }
        if let (Some(fields), Some(record)) = (&self.fields, &self.write.record) {
            command.arg(item::millis(item::removal(record, config.expiry_margin)));
            for (field, value) in fields {
                command.arg(*field).arg(value);
            }
        }
        let size = self.size.saturating_add(name.len());
        Request { name, command, size, writes: true, go_to: self.go_to.take() }
    }

    pub(crate) fn unknown(&self, failure: Failure) -> Verdict {
        Verdict::Unknown(failure.report(self.in_doubt || self.unconfirmed))
    }

    /// Whether `found` was written by this write: an earlier request was applied and its response
    /// was lost. The token proves it, because no other write has it.
    pub(crate) fn is_own_work(&self, found: &IdempotencyRecord) -> bool {
        let has_token = found.owner.is_some() || found.last_owner.is_some();
        self.in_doubt && has_token && self.write.record.as_ref() == Some(found)
    }
}
