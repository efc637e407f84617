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
    error::{self, First, is_redirection},
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

/// What is there, for a claim that was refused because the server has no memory left.
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
