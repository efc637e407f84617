//! The rounds of a call: send the pending writes, and repeat what may succeed.

use lambda_idempotency_core::{
    clock::Timestamp,
    record::IdempotencyRecord,
    store::{Verdict, Write},
};
use redis::Value;

use crate::{
    batch::Reply,
    config::Config,
    error::{Failure, First},
    item::decode,
    member::Member,
    retry::{backoff, budget},
    store::RedisStore,
};

/// How often requests that were sent to a wrong server are sent on without a pause.
const REDIRECTIONS: usize = 3;

/// The state of a call.
struct Rounds<'w> {
    verdicts: Vec<(usize, Verdict)>,
    pending: Vec<Member<'w>>,
    /// The last failure of each member that is sent again.
    failed: Vec<(usize, Failure)>,
}

impl RedisStore {
    /// Applies each write; one verdict each, in order.
    pub(crate) async fn write_all(
        &self,
        writes: &[Write],
        call_deadline: Timestamp,
    ) -> Vec<Verdict> {
        let budget = budget(&self.config, call_deadline);
        let mut backoff = backoff(&self.config);
        let mut rounds = Rounds::begin(&self.config, writes);
        let mut redirections = 0;
        while !rounds.pending.is_empty() {
            if budget.left().is_zero() {
                rounds.give_up(&Failure::too_late(&self.config.address));
                break;
            }
            rounds.failed.clear();
            let mut members = std::mem::take(&mut rounds.pending);
            let requests = members.iter_mut().map(|member| member.request(&self.config)).collect();
            let replies = self.send(requests, &budget).await;
            for (member, reply) in members.into_iter().zip(replies) {
                rounds.take(&self.config, member, reply);
            }
            if rounds.only_redirected() && redirections < REDIRECTIONS {
                redirections += 1;
            } else if let Some((_, failure)) = rounds.failed.first() {
                let kind = failure.kind();
                if !backoff.pause(&budget).await {
                    rounds.give_up(&Failure::too_late(&self.config.address));
                    break;
                }
                let writes = rounds.pending.len();
                tracing::debug!(server = %self.config.address, writes, ?kind, "writing again");
            }
        }
        rounds.verdicts.sort_unstable_by_key(|(index, _)| *index);
        rounds.verdicts.into_iter().map(|(_, verdict)| verdict).collect()
    }
}

impl<'w> Rounds<'w> {
    fn begin(config: &Config, writes: &'w [Write]) -> Self {
        let mut rounds = Self { verdicts: vec![], pending: vec![], failed: vec![] };
        for (index, write) in writes.iter().enumerate() {
            match Member::new(config, index, write) {
                Ok(member) => rounds.pending.push(member),
                Err(error) => rounds.verdicts.push((index, error.into())),
            }
        }
        rounds
    }

    fn settle(&mut self, member: &Member<'_>, verdict: Verdict) {
        self.verdicts.push((member.index, verdict));
    }

    fn take(&mut self, config: &Config, member: Member<'w>, reply: Reply) {
        match reply.answer {
            Ok(Value::Int(_)) => self.written(member, reply.confirmed),
            Ok(Value::Nil) if member.applies_to_nothing() => self.written(member, reply.confirmed),
            Ok(Value::Nil) => self.found(config, member, None),
            Ok(Value::BulkString(text)) => match decode(&text) {
                Ok(found) => self.found(config, member, Some(found)),
                Err(corrupt) => {
                    let failure = Failure::corrupt(&config.address, &corrupt);
                    self.settle(&member, member.unknown(failure));
                }
            },
            Ok(_) => self.failed(member, Failure::unreadable(&config.address)),
            Err(failure) => self.failed(member, failure),
        }
    }

    /// The guard did not hold for what is there.
    fn found(&mut self, config: &Config, mut member: Member<'w>, found: Option<IdempotencyRecord>) {
        let own = found.as_ref().is_some_and(|found| member.is_own_work(found));
        if own && config.replicas.is_some() {
            // It was written, and has to be confirmed.
            member.unconfirmed = true;
            self.pending.push(member);
        } else if own {
            self.settle(&member, Verdict::Written);
        } else if member.unconfirmed && member.write.applies(found.as_ref()) {
            // It was written, and is not there any more: another write replaced it, or a failover lost it.
            member.unconfirmed = false;
            self.pending.push(member);
        } else {
            self.settle(&member, Verdict::Found(found));
        }
    }

    /// The server has it.
    fn written(&mut self, mut member: Member<'w>, confirmed: Result<(), Failure>) {
        match confirmed {
            // A deletion that a failover loses only holds the key until its lease ends.
            Err(failure) if member.write.record.is_some() => {
                member.unconfirmed = true;
                self.failed(member, failure);
            }
            _ => self.settle(&member, Verdict::Written),
        }
    }

    fn failed(&mut self, mut member: Member<'w>, failure: Failure) {
        if !failure.retry {
            self.settle(&member, member.unknown(failure));
            return;
        }
        member.in_doubt |= failure.in_doubt;
        if let First::GoTo(address) = &failure.first {
            member.go_to = Some(address.clone());
        }
        self.failed.push((member.index, failure));
        self.pending.push(member);
    }

    fn only_redirected(&self) -> bool {
        self.failed.iter().all(|(_, failure)| failure.is_redirection())
    }

    /// No time is left: each pending write ends with its last failure.
    fn give_up(&mut self, otherwise: &Failure) {
        for member in std::mem::take(&mut self.pending) {
            let own = self.failed.iter().find(|(index, _)| *index == member.index);
            let failure = own.map_or(otherwise, |(_, failure)| failure).clone();
            let verdict = member.unknown(failure);
            self.settle(&member, verdict);
        }
    }
}
