//! One write of a call: the command to send, and the meaning of its answer.

use std::ops::{Deref, DerefMut};

use lambda_idempotency_core::{
    retry::PendingWrite,
    store::{Guard, RecordVersion, StoreError},
};
use redis::Cmd;

use crate::{address::Address, batch::Request, config::Config, guard, item, limits};

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pending: PendingWrite<'w>,
    /// What to store; `None` deletes.
    text: Option<String>,
    /// The server has it, and too few replicas. It is written again, over itself, until they have it.
    pub(crate) unconfirmed: bool,
    /// The server that is receiving the record.
    pub(crate) go_to: Option<Address>,
}

impl<'w> Member<'w> {
    /// The write, or its verdict if it cannot be sent.
    pub(crate) fn new(config: &Config, pending: PendingWrite<'w>) -> Result<Self, StoreError> {
        let write = pending.write;
        if write.effects.is_some() {
            return Err(StoreError::without_effects(write));
        }
        let text = write.record.as_ref().map(item::encode);
        let fit = limits::fit(config, text.as_ref().map_or(0, String::len));
        fit.map_err(|failure| failure.report(false))?;
        Ok(Self { pending, text, unconfirmed: false, go_to: None })
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
