//! The rounds of a call: send the pending writes, and repeat what may succeed.

use lambda_idempotency_core::{
    clock::Timestamp,
    record::IdempotencyRecord,
    retry,
    store::{Verdict, Write},
};
use redis::Value;

use crate::{
    batch::Reply,
    config::Config,
    error::{self, Failure, First, is_redirection},
    item::decode,
    member::{Member, Next},
    retry::{backoff, budget},
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
            let replies = self.send(requests, &budget).await;
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
fn take<'w>(rounds: &mut Rounds<'w>, config: &Config, member: Member<'w>, reply: Reply) {
    match reply.answer {
        Ok(Value::Nil) if matches!(member.next, Next::Look) => looked(rounds, config, member, None),
        Ok(Value::Int(_)) => written(rounds, member, reply.confirmed),
        Ok(Value::Nil) if member.applies_to_nothing() => written(rounds, member, reply.confirmed),
        Ok(Value::Nil) => found(rounds, config, member, None),
        Ok(Value::BulkString(text)) => match decode(&text) {
            Ok(record) if matches!(member.next, Next::Look) => {
                looked(rounds, config, member, Some(record));
            }
            Ok(record) => found(rounds, config, member, Some(record)),
            Err(problem) => rounds.fail(member, error::corrupt(&config.address, &problem)),
        },
        Ok(_) => rounds.fail(member, error::unreadable(&config.address)),
        Err(failure) => {
            let mut member = member;
            let is_claim = member.write.is_claim() && matches!(member.next, Next::Write);
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

/// What is there, for a claim that was refused because the server has no memory left.
fn looked<'w>(
    rounds: &mut Rounds<'w>,
    config: &Config,
    mut member: Member<'w>,
    record: Option<IdempotencyRecord>,
) {
    member.next = Next::Write;
    match record {
        Some(record) if !member.write.applies(Some(&record)) => {
            found(rounds, config, member, Some(record));
        }
        _ => rounds.fail(member, error::no_memory(&config.address)),
    }
}

/// The guard did not hold for what is there.
fn found<'w>(
    rounds: &mut Rounds<'w>,
    config: &Config,
    mut member: Member<'w>,
    found: Option<IdempotencyRecord>,
) {
    let waits = config.replicas.is_some();
    match (&member.next, found) {
        (_, Some(found)) if member.is_own_work(&found) && waits => {
            // It was written, and has to be confirmed.
            member.next = Next::Confirm;
            rounds.again(member);
        }
        (_, Some(found)) if member.is_own_work(&found) => rounds.settle(&member, Verdict::Written),
        // What was to be confirmed is not there any more: another write replaced it, or a failover lost it.
        (Next::ConfirmFound(_), _) => {
            member.next = Next::Write;
            rounds.again(member);
        }
        (Next::Confirm, found) if member.write.applies(found.as_ref()) => {
            member.next = Next::Write;
            rounds.again(member);
        }
        (_, Some(found)) if waits && member.is_of_same_claim(&found) => {
            member.next = Next::ConfirmFound(Box::new(found));
            rounds.again(member);
        }
        (_, found) => rounds.settle(&member, Verdict::Found(found)),
    }
}

/// The server has it.
fn written<'w>(rounds: &mut Rounds<'w>, mut member: Member<'w>, confirmed: Result<(), Failure>) {
    let is_found = matches!(member.next, Next::ConfirmFound(_));
    match confirmed {
        // A deletion that a failover loses only holds the key until its lease ends.
        Err(failure) if is_found || member.write.record.is_some() => {
            if !is_found {
                member.next = Next::Confirm;
            }
            rounds.fail(member, failure);
        }
        _ => {
            let verdict = match std::mem::replace(&mut member.next, Next::Write) {
                Next::ConfirmFound(found) => Verdict::Found(Some(*found)),
                Next::Write | Next::Look | Next::Confirm => Verdict::Written,
            };
            rounds.settle(&member, verdict);
        }
    }
}
