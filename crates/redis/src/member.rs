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
    /// What to store; `None` deletes.
    text: Option<String>,
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
        let text = write.record.as_ref().map(item::encode);
        let fit = limits::fit(config, text.as_ref().map_or(0, String::len));
        fit.map_err(|failure| failure.report(false))?;
        Ok(Self { index, write, text, in_doubt: false, unconfirmed: false, go_to: None })
    }

    /// What to send.
    pub(crate) fn request(&mut self, config: &Config) -> Request {
        let name = config.name(&self.write.key);
        let guard = match &self.write.record {
            Some(record) if self.unconfirmed => Guard::Unchanged(RecordVersion::of(record)),
            _ => self.write.guard.clone(),
        };
        let record = self.text.as_ref().zip(self.write.record.as_ref());
        let record =
            record.map(|(text, record)| (text, item::removal(record, config.expiry_margin)));
        let mut command = Cmd::new();
        match (guard::beginning(&guard), record) {
            (None, Some((text, removal))) => {
                command.arg("SET").arg(&name).arg(text).arg("NX").arg("GET");
                command.arg("PXAT").arg(removal.as_millis());
            }
            // It deletes nothing: it is a read in the form of a write.
            (None, None) => {
                command.arg("EVALSHA").arg(&config.scripts.read.hash).arg(1).arg(&name);
            }
            (Some(beginning), record) => {
                let settles =
                    matches!(guard, Guard::OwnedBy(_)) || record.is_none() || self.unconfirmed;
                let scripts = &config.scripts;
                let script = if settles { &scripts.settle } else { &scripts.claim };
                command.arg("EVALSHA").arg(&script.hash).arg(1).arg(&name).arg(beginning);
                if let Some((text, removal)) = record {
                    command.arg(text).arg(removal.as_millis());
                }
            }
        }
        let size = self.text.as_ref().map_or(0, String::len).saturating_add(name.len());
        Request { name, command, size, writes: true, go_to: self.go_to.take() }
    }

    /// Whether the answer without a record means that the write was applied: there was none, as its guard says.
    pub(crate) fn applies_to_nothing(&self) -> bool {
        !self.unconfirmed && self.write.applies(None)
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
