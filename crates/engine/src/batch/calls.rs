//! Calls of the store that are on their way: the next one need not wait for one that takes long.
//!
//! A call is back with the slowest of its members. One that is throttled, because its key lies in a hot
//! partition, must not hold up the others: neither those that share its call, which therefore ends
//! early, and takes twice as long at each further try; nor those that come after it.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use crate::unanswered::{each, unanswered};
use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    record::IdempotencyRecord,
    store::{Store, Verdict, Write},
};

/// How long the next call waits for the last one.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// How long a call may take at first.
pub(super) const FIRST_CALL: Duration = Duration::from_secs(5);

/// When a call ends that is made now for the first time or, after `tries` that failed, again.
pub(super) fn ends(now: Timestamp, first: Duration, tries: u32) -> Timestamp {
    now.plus(first.saturating_mul(1 << tries.min(8)))
}

/// What came of a write.
pub(super) struct Answered<M> {
    pub(super) member: M,
    /// What was to be put there; `None` if it was to be deleted.
    pub(super) record: Option<IdempotencyRecord>,
    pub(super) verdict: Verdict,
}

impl<M> Answered<M> {
    /// Takes the record that is in the store now, as far as the verdict tells.
    pub(super) fn left(&mut self) -> Option<IdempotencyRecord> {
        match &self.verdict {
            Verdict::Written => self.record.take(),
            Verdict::Found(found) => found.clone(),
            Verdict::Unknown(_) => None,
        }
    }
}

/// The calls on their way, and who has a part in each.
pub(super) struct Calls<M> {
    sent: Vec<Sent<M>>,
}

struct Sent<M> {
    members: Vec<M>,
    /// From when on the next call need not wait for this one.
    free_from: Timestamp,
    call: BoxFuture<'static, (Vec<Write>, Vec<Verdict>)>,
}

impl<M> Default for Calls<M> {
    fn default() -> Self {
        Self { sent: Vec::new() }
    }
}

impl<M> Calls<M> {
    /// Sends a write for each of `members`.
    pub(super) fn send(
        &mut self,
        store: &Arc<dyn Store>,
        members: Vec<M>,
        writes: Vec<Write>,
        deadline: Timestamp,
        free_from: Timestamp,
    ) {
        let store = Arc::clone(store);
        let call = Box::pin(async move {
            let verdicts = store.write(&writes, deadline).await;
            (writes, verdicts)
        });
        self.sent.push(Sent { members, free_from, call });
    }

    /// When a call can go that is due at `due`.
    pub(super) fn next(&self, due: Timestamp) -> Timestamp {
        self.sent.last().map_or(due, |last| due.max(last.free_from))
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Vec<Answered<M>>> {
        for place in 0..self.sent.len() {
            let Some(sent) = self.sent.get_mut(place) else { break };
            if let Poll::Ready((writes, verdicts)) = sent.call.as_mut().poll(context) {
                let members = self.sent.remove(place).members.into_iter().zip(writes);
                let verdicts = each(verdicts, Verdict::Unknown(unanswered()));
                let answered = members.zip(verdicts).map(|((member, write), verdict)| Answered {
                    member,
                    record: write.record,
                    verdict,
                });
                return Poll::Ready(answered.collect());
            }
        }
        Poll::Pending
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    pub(super) fn members(&self) -> impl Iterator<Item = &M> {
        self.sent.iter().flat_map(|sent| &sent.members)
    }

    /// Gives up all of them.
    pub(super) fn abandon(&mut self) -> impl Iterator<Item = M> {
        std::mem::take(&mut self.sent).into_iter().flat_map(|sent| sent.members)
    }
}
