//! One write of a call: the command to send, and the meaning of its answer.

use std::ops::{Deref, DerefMut};

use lambda_idempotency_core::{
    retry::PendingWrite,
    store::{Guard, StoreError},
};
use redis::Cmd;

use crate::{address::Address, batch::Request, config::Config, guard, item, limits};

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pending: PendingWrite<'w>,
    /// What to store; `None` deletes.
    text: Option<String>,
    /// Which request is next.
    pub(crate) next: Next,
    /// The server that is receiving the record.
    pub(crate) go_to: Option<Address>,
}

/// Which request a write sends next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The write.
    Write,
    /// A claim was refused, because the server has no memory left. What it would have met is read, which needs none: a
    /// duplicate can be answered from it.
    Look,
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
        Ok(Self { pending, text, next: Next::Write, go_to: None })
    }

    /// What to send.
    pub(crate) fn request(&mut self, config: &Config) -> Request {
        let name = config.name(&self.write.key);
        let guard = self.write.guard.clone();
        let record = self.text.as_ref().zip(self.write.record.as_ref());
        let record =
            record.map(|(text, record)| (text, item::removal(record, config.expiry_margin)));
        let size = self.text.as_ref().map_or(0, String::len).saturating_add(name.len());
        let settles = !self.write.is_claim();
        let mut command = Cmd::new();
        let looks = self.next == Next::Look;
        match (guard, record.filter(|_| !looks)) {
            (Guard::Absent, Some((text, removal))) if !settles => {
                command.arg("SET").arg(&name).arg(text).arg("NX").arg("GET");
                command.arg("PXAT").arg(removal.as_millis());
            }
            // Without a record it deletes nothing: it is a read in the form of a write.
            (guard, None) if looks || guard == Guard::Absent => {
                command.arg("EVALSHA").arg(&config.scripts.read.hash).arg(1).arg(&name);
            }
            (guard, record) => {
                let scripts = &config.scripts;
                let script = if settles { &scripts.settle } else { &scripts.claim };
                command.arg("EVALSHA").arg(&script.hash).arg(1).arg(&name);
                command.arg(guard::beginning(&guard));
                if let Some((text, removal)) = record {
                    command.arg(text).arg(removal.as_millis());
                }
            }
        }
        Request { name, command, size, go_to: self.go_to.take() }
    }

    /// Whether the answer without a record means that the write was applied: there was none, as its guard says.
    pub(crate) fn applies_to_nothing(&self) -> bool {
        self.next == Next::Write && self.write.applies(None)
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
