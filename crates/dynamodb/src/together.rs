//! Sends writes in a request with those of other calls: see [`group`](crate::group).

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc};

use futures_util::{
    FutureExt as _,
    stream::{FuturesUnordered, StreamExt as _},
};
use lambda_idempotency_core::{
    clock::BoxFuture,
    contained::discard,
    retry::{Patience, PendingWrite},
    usage::{Usage, measured},
};

use crate::{
    error,
    group::{Group, Queued, Sent, Ticket},
    member::{Answer, Member},
    retry::Budget,
    slots::Purpose,
    store::DynamoDbStore,
    turns::turns,
};

impl DynamoDbStore {
    /// Sends these writes in a request with those of other calls; answers in order.
    pub(crate) async fn write_together(
        &self,
        members: &[Member<'_>],
        purpose: Purpose,
        budget: &Budget<'_>,
    ) -> Vec<Answer> {
        let ticket = self.groups.join(members, budget, purpose, |group| {
            once_woken(contained(send(self.clone(), Arc::clone(&group), purpose), group))
        });
        // The other calls of this turn can join before the first of them is polled again. A completion is sent at
        // once as long as there are requests for all: until it is polled again, a handler may compute for long.
        if purpose == Purpose::Claim || self.groups.are_crowded() {
            turns(1).await;
        }
        if self.wait(&ticket, budget).await {
            let missing = Answer::Failed(error::unanswered_in_group(&self.config));
            let (answers, took_too_long) = ticket.fetch(&missing);
            if took_too_long {
                budget.be_more_patient();
            }
            return answers;
        }
        let failure = match ticket.give_up() {
            true => error::too_late(&self.config),
            false => {
                budget.be_more_patient();
                error::unanswered_in_group(&self.config)
            }
        };
        vec![Answer::Failed(failure); members.len()]
    }

    /// Waits until the request of the group has ended, and says whether it has: a call waits neither past its deadline nor
    /// for longer than its own attempt may take, although the request goes on for others.
    async fn wait(&self, ticket: &Ticket, budget: &Budget<'_>) -> bool {
        let mut sending = ticket.sending();
        // Nobody is woken when the request begins: the first look is when it may be over, had it begun at once.
        let mut pause = budget.limit();
        while budget.within(pause, &mut sending).await.is_err() {
            let now = self.config.timing.clock.now();
            pause = ticket.waits(budget, now).unwrap_or_else(|| budget.limit());
            if pause.is_zero() {
                return false;
            }
        }
        true
    }
}

/// Ends a request that panics, in code of the user within the SDK, as one without an answer. The calls that share it
/// would wait for it until their deadlines.
async fn contained(request: impl Future<Output = ()> + Send + 'static, group: Arc<Group>) {
    if let Err(thrown) = AssertUnwindSafe(request).catch_unwind().await {
        discard(thrown);
        group.close(); // so that no other call joins it
    }
}

/// Polls the request of a group only when it was woken: that wakes all calls of the group, and each of them polls it.
fn once_woken(request: impl Future<Output = ()> + Send + 'static) -> BoxFuture<'static, ()> {
    let mut request = FuturesUnordered::from_iter([request]);
    Box::pin(async move { request.next().await.unwrap_or_default() })
}

/// Sends a group when a request may be sent.
async fn send(store: DynamoDbStore, group: Arc<Group>, purpose: Purpose) {
    let config = &*store.config;
    let _slot = store.slots.enter(purpose, &*config.timing.clock).await;
    let queued = group.close();
    let sent: Vec<(usize, &Queued)> =
        queued.iter().enumerate().filter_map(|(place, one)| Some((place, one.as_ref()?))).collect();
    let deadline = sent.iter().map(|(_, one)| one.call_deadline).max().unwrap_or_default();
    let budget = Budget::new(config, deadline);
    let patience = sent.iter().map(|(_, one)| one.patience).max().unwrap_or_default();
    budget.be_patient(patience);
    let at = config.timing.clock.now();
    let learnt = config.patience.learnt();
    let limit = Patience::limit(learnt, patience, deadline.since(at));
    group.begin(Sent { at, until: at.plus(limit), learnt });
    // Each was a member of its own call before, so none has a verdict already.
    let members: Vec<Member<'_>> = sent
        .iter()
        .filter_map(|(place, one)| Member::new(config, PendingWrite::new(*place, &one.write)).ok())
        .collect();
    let request = async {
        match &*members {
            [] => vec![],
            [member] => vec![store.write_one(member, &budget).await],
            members => store.write_batch(members, &budget).await,
        }
    };
    // Whichever call polls this would be charged for all of it.
    let (answers, usage) = match group.is_measured() {
        true => measured(pin!(request)).await,
        false => (request.await, Usage::default()),
    };
    let places = members.iter().map(|member| member.index);
    group.answer(places.zip(answers), budget.patience() > limit.max(patience), usage);
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use aws_sdk_dynamodb::{Client, config::BehaviorVersion};
    use futures_util::future::{join, join_all};
    use lambda_idempotency_core::{
        clock::Timestamp,
        key::Key,
        store::{Guard, Write},
    };

    use super::*;

    /// As a credentials provider of the user may.
    #[tokio::test]
    async fn a_request_that_panics_ends_for_all_its_calls() {
        let sdk = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .build();
        let store = DynamoDbStore::builder(Client::from_conf(sdk), "orders").build().unwrap();
        let budget = Budget::new(&store.config, Timestamp::EPOCH);
        let requests = AtomicUsize::new(0);
        let joined = |key| {
            let write = Write::new(Key::from_text(key), Guard::Absent, None);
            let member = Member::new(&store.config, PendingWrite::new(0, &write)).ok().unwrap();
            store.groups.join(&[member], &budget, Purpose::Claim, |group| {
                requests.fetch_add(1, Ordering::Relaxed);
                once_woken(contained(async { panic!("told to") }, group))
            })
        };
        let (first, second) = (joined("op#1"), joined("op#2"));
        join(first.sending(), second.sending()).await;
        let missing = Answer::Failed(error::unanswered_in_group(&store.config));
        for ticket in [first, second] {
            let (answers, _) = ticket.fetch(&missing);
            assert!(matches!(&*answers, [Answer::Failed(failure)] if failure.in_doubt));
        }
        assert_eq!(requests.load(Ordering::Relaxed), 1);
        let third = joined("op#3");
        assert_eq!(requests.load(Ordering::Relaxed), 2, "the next call has a request of its own");
        drop(third);
    }

    #[tokio::test]
    async fn the_calls_of_a_group_poll_its_request_only_when_it_was_woken() {
        let (polls, (answer, mut answered)) =
            (AtomicUsize::new(0), tokio::sync::oneshot::channel());
        let polls = Arc::new(polls);
        let counted = Arc::clone(&polls);
        let request = once_woken(poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            answered.poll_unpin(context).map(Result::unwrap_or_default)
        }));
        let request = request.shared();
        let mut calls = pin!(join_all((0..25).map(|_| request.clone())));
        assert!(calls.as_mut().now_or_never().is_none());
        answer.send(()).unwrap();
        calls.await;
        assert_eq!(polls.load(Ordering::Relaxed), 2, "of 25 calls");
    }
}
