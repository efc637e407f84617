//! Sends the calls that are due: claims, settlements and renewals to the store, messages to the sender.

use super::{Action, Machine, Present, claims::Request, record::Entry};
use lambda_idempotency_core::{clock::Timestamp, store::Write};

impl Machine<'_> {
    /// Sends the claims that are to be sent. Says whether one was answered without the store: then
    /// more may begin.
    pub(super) fn send_claims(&mut self, present: &mut Present<'_>) -> bool {
        let mut answered = false;
        loop {
            let (now, mut answers) = (present.now, Vec::new());
            let call = self.call_ids.next();
            let lease_until = self.leases.terms().lease_until(now);
            let ends = (lease_until, self.starts.budget().doubt_deadline(now));
            let is_only = self.records.all().len() == 1;
            let sent = self.claims.send(call, now, ends, is_only, &mut answers);
            answered |= !answers.is_empty();
            self.answered(answers, present);
            match sent {
                Some((Request::Read(keys), deadline)) => {
                    self.call_ids.sent();
                    self.actions.push_back(Action::Read { call, keys, deadline });
                }
                Some((Request::Write(writes), deadline)) => self.write(writes, deadline),
                None => return answered,
            }
        }
    }

    /// Sends the settlements that are due. Says whether there were any.
    pub(super) fn send_settlements(&mut self, presses: bool, now: Timestamp) -> bool {
        let sent = self.settlements.send(self.call_ids.next(), presses, now);
        let is_sent = sent.is_some();
        if let Some((writes, deadline)) = sent {
            self.write(writes, deadline);
        }
        is_sent
    }

    /// Renews the leases that are due.
    pub(super) fn renew(&mut self, now: Timestamp) {
        let records = &self.records;
        let held = |at| {
            let entry = records.get(at).filter(|entry| Entry::stage(entry).is_kept())?;
            Some((entry.key()?, entry.held()?))
        };
        let reply = self.starts.budget().reply();
        if let Some((writes, deadline)) = self.leases.send(self.call_ids.next(), now, reply, held) {
            self.write(writes, deadline);
        }
    }

    /// Hands messages to the sender.
    pub(super) fn send_messages(&mut self, now: Timestamp) {
        let last = self.starts.budget().settle_deadline(now);
        while let Some((messages, deadline)) = self.outboxes.send(self.call_ids.next(), now, last) {
            let call = self.call_ids.next();
            self.call_ids.sent();
            self.actions.push_back(Action::Send { call, messages, deadline });
        }
    }

    /// Makes the call of the store that was added as the next one.
    fn write(&mut self, writes: Vec<Write>, deadline: Timestamp) {
        let call = self.call_ids.next();
        self.call_ids.sent();
        self.actions.push_back(Action::Write { call, writes, deadline });
    }
}
