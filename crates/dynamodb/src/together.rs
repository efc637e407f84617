//! Sends writes in a request with those of other calls: see [`group`](crate::group).

use std::{pin::pin, sync::Arc};

use futures_util::{
    future::{Either, select},
    stream::{FuturesUnordered, StreamExt as _},
};
use lambda_idempotency_core::{
    clock::BoxFuture,
    retry::PendingWrite,
    usage::{Usage, measured},
};

use crate::{
    error,
    group::{Group, Queued},
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
        let ticket = self
            .groups
            .join(members, budget, purpose, |group| once_woken(send(self.clone(), group, purpose)));
        // The other calls of this turn can join before the first of them is polled again. A completion is sent at
        // once as long as there are requests for all: until it is polled again, a handler may compute for long.
        if purpose == Purpose::Claim || self.groups.are_crowded() {
            turns(1).await;
        }
        let too_late = self.config.timing.clock.sleep(budget.left());
        match select(ticket.sending(), too_late).await {
            Either::Left(((), _)) => {
                let missing = Answer::Failed(error::unanswered_in_group(&self.config));
                let (answers, patience) = ticket.fetch(&missing);
                budget.be_patient(patience);
                answers
            }
            Either::Right(((), _)) => {
                let failure = match ticket.give_up() {
                    true => error::too_late(&self.config),
                    false => error::unanswered_in_group(&self.config),
                };
                vec![Answer::Failed(failure); members.len()]
            }
        }
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
    budget.be_patient(sent.iter().map(|(_, one)| one.patience).max().unwrap_or_default());
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
    group.answer(places.zip(answers), budget.patience(), usage);
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures_util::{FutureExt as _, future::join_all};

    use super::*;

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
