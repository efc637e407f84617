//! The rounds of a call: send the pending writes, and repeat what may succeed.

use std::ops::{Deref, DerefMut};

use lambda_idempotency_core::{
    clock::Timestamp,
    record::IdempotencyRecord,
    retry::{self, PendingWrite},
    store::{Guard, StoreError, Verdict, Write},
};
use redis::{Cmd, Value};

use crate::{
    config::{Address, Config},
    error::{self, First, is_redirection},
    guard::beginning,
    item::{changed, decode, encode, removal},
    limits::{backoff, budget, fit},
    servers::{Reply, Request},
    store::RedisStore,
};

/// How often requests that were sent to a wrong server are sent on without a pause.
const REDIRECTIONS: usize = 3;

/// The state of a call.
type Rounds<'w> = retry::Rounds<Member<'w>, First>;

impl RedisStore {
    /// Applies each write; one verdict each, in order.
    pub(crate) async fn write_all(
        &self,
        writes: &[Write],
        call_deadline: Timestamp,
    ) -> Vec<Verdict> {
        let budget = budget(&self.config, call_deadline);
        let mut backoff = backoff(&self.config);
        let mut rounds = Rounds::begin(writes, |pending| Member::new(&self.config, pending));
        let too_late = || error::too_late(&self.config.address);
        let mut redirections = 0;
        loop {
            let at_once = redirections < REDIRECTIONS && rounds.failures().all(is_redirection);
            redirections += usize::from(at_once && rounds.failed().is_some());
            let pauses = (!at_once).then_some(&mut backoff);
            let Some(mut members) = rounds.next(&budget, pauses, too_late).await else { break };
            let requests = members.iter_mut().map(|member| member.request(&self.config)).collect();
            let replies = self.servers.send(requests, &budget).await;
            for (member, reply) in members.into_iter().zip(replies) {
                take(&mut rounds, &self.config, member, reply);
            }
            if let Some(kind) = rounds.failed() {
                tracing::debug!(server = %self.config.address, ?kind, "some writes failed");
            }
        }
        rounds.verdicts()
    }
}

/// Handles the answer to a write.
fn take<'w>(rounds: &mut Rounds<'w>, config: &Config, mut member: Member<'w>, reply: Reply) {
    match reply {
        Ok(Value::Nil) if member.next == Next::Look => looked(rounds, config, member, None),
        Ok(Value::Int(_)) => rounds.settle(&member, Verdict::Written),
        Ok(Value::Nil) if member.applies_to_nothing() => rounds.settle(&member, Verdict::Written),
        Ok(Value::Nil) => rounds.settle(&member, Verdict::Found(None)),
        Ok(Value::BulkString(text)) => match decode(&text) {
            Ok(record) if member.next == Next::Look => {
                looked(rounds, config, member, Some(record));
            }
            Ok(record) => found(rounds, &member, record),
            Err(problem) => rounds.fail(member, error::corrupt(&config.address, &problem)),
        },
        Ok(_) => rounds.fail(member, error::unreadable(&config.address)),
        Err(failure) => {
            let is_claim = member.write.is_claim() && member.next == Next::Write;
            if failure.detail == First::Look && is_claim {
                member.next = Next::Look;
                return rounds.again(member);
            }
            if let First::GoTo(address) = &failure.detail {
                member.go_to = Some(address.clone());
            }
            rounds.fail(member, failure);
        }
    }
}

/// The record that is there, for a claim that was refused because the server has no memory left.
fn looked<'w>(
    rounds: &mut Rounds<'w>,
    config: &Config,
    mut member: Member<'w>,
    record: Option<IdempotencyRecord>,
) {
    member.next = Next::Write;
    match record {
        Some(record) if !member.write.applies(Some(&record)) => found(rounds, &member, record),
        _ => rounds.fail(member, error::no_memory(&config.address)),
    }
}

/// The guard did not hold for what is there, perhaps because an earlier request of this call has written it.
fn found<'w>(rounds: &mut Rounds<'w>, member: &Member<'w>, found: IdempotencyRecord) {
    let verdict =
        if member.is_own_work(&found) { Verdict::Written } else { Verdict::Found(Some(found)) };
    rounds.settle(member, verdict);
}

/// One write of a call, from the first attempt to its verdict.
pub(crate) struct Member<'w> {
    pending: PendingWrite<'w>,
    /// The text to store; `None` deletes.
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
    /// A claim was refused, because the server has no memory left. The record that it would have met is read, which needs none: a
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
        let text = write.record.as_ref().map(|record| encode(record, changed(write)));
        let size = write.record.as_ref().map_or(0, IdempotencyRecord::text_bytes);
        fit(config, size).map_err(|failure| failure.report(false))?;
        Ok(Self { pending, text, next: Next::Write, go_to: None })
    }

    /// The command to send.
    pub(crate) fn request(&mut self, config: &Config) -> Request {
        let name = config.name(&self.write.key);
        let guard = self.write.guard.clone();
        let record = self.text.as_ref().zip(self.write.record.as_ref());
        let record = record.map(|(text, record)| (text, removal(record, config.expiry_margin)));
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
                command = config.scripts.read.command(&name);
            }
            (guard, record) => {
                let scripts = &config.scripts;
                let script = if settles { &scripts.settle } else { &scripts.claim };
                command = script.command(&name);
                command.arg(beginning(&guard));
                if let Some((text, removal)) = record {
                    command.arg(text).arg(removal.as_millis());
                    if settles {
                        command.arg(changed(self.write));
                    }
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
