//! A queue that delivers its records again and again until they are done, some of which kill their process.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a failing test"
)]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, join_all, select};
use lambda_idempotency_core::{clock::Clock as _, outcome::Outcome, record::Owner};
use tokio::sync::Notify;

use crate::{
    quarantine::SECOND,
    support::{Rec, World, rec},
};

/// A record of the queue.
#[derive(Clone)]
pub(crate) struct Message {
    pub(crate) label: &'static str,
    pub(crate) group: Option<&'static str>,
    pub(crate) kills: bool,
    pub(crate) receives: u32,
    /// The receive at which it was done.
    pub(crate) done_at: Option<u32>,
    /// The receive at which it was acknowledged. Work that was done in a process that dies is delivered again.
    pub(crate) gone_at: Option<u32>,
    /// Whether it is not delivered any more.
    pub(crate) is_gone: bool,
    /// How often its handler was called.
    calls: Arc<AtomicU32>,
    /// The owner of its last attempt that was lost.
    lost: Option<Owner>,
}

/// What became of one receive of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receive {
    Done,
    /// Its process died while it was claimed.
    Lost,
    /// It was not claimed.
    Untried,
}

pub(crate) struct Queue {
    pub(crate) world: World,
    pub(crate) messages: Vec<Message>,
    /// How long each handler takes. A handler that kills does so half-way.
    takes: Duration,
    /// Whether the source counts receives.
    pub(crate) counts: bool,
    /// Whether it delivers what is done for as long as one record of the invocation is returned.
    pub(crate) is_whole: bool,
}

impl Queue {
    pub(crate) fn new(records: usize, kills: &[usize], takes: Duration) -> Self {
        let mut world = World::yielding();
        world.policy.concurrency = 16;
        let mut queue = Self { world, messages: Vec::new(), takes, counts: true, is_whole: false };
        (0..records).for_each(|at| queue.add(kills.contains(&at)));
        queue
    }

    pub(crate) fn add(&mut self, kills: bool) {
        let label: &'static str = format!("r{}", self.messages.len()).leak();
        let calls = Arc::default();
        let message = Message {
            label,
            group: None,
            kills,
            receives: 0,
            done_at: None,
            gone_at: None,
            is_gone: false,
            calls,
            lost: None,
        };
        self.messages.push(message);
    }

    fn record(&self, at: usize, dies: &Arc<Notify>) -> Rec {
        let Message { label, group, kills, receives, ref calls, .. } = self.messages[at];
        let (calls, dies, takes) = (Arc::clone(calls), Arc::clone(dies), self.takes);
        let record = rec(label, move |world: World, _| async move {
            calls.fetch_add(1, Ordering::Relaxed);
            if kills {
                world.clock.sleep(takes / 2).await;
                dies.notify_one();
                return std::future::pending().await;
            }
            world.clock.sleep(takes).await;
            Ok(())
        });
        let record = record.receives(if self.counts { receives } else { 0 });
        match group {
            Some(group) => record.group(group),
            None => record,
        }
    }

    /// One process with these invocations, of the records that are not acknowledged yet. It may die from outside, half-way
    /// through its first handlers. Afterwards its leases have ended.
    pub(crate) async fn receive(&mut self, invocations: &[Vec<usize>], dies_from_outside: bool) {
        let dies = Arc::new(Notify::new());
        let (mut batches, mut delivered) = (Vec::new(), Vec::new());
        for records in invocations {
            let left = records.iter().copied().filter(|at| !self.messages[*at].is_gone);
            let left: Vec<usize> = left.collect();
            left.iter().for_each(|at| self.messages[*at].receives += 1);
            batches.push(left.iter().map(|at| self.record(*at, &dies)).collect());
            delivered.push(left);
        }
        // A process learns anew how long handlers take.
        self.world.pace = Arc::default();
        let (world, engine, half) = (self.world.clone(), self.world.engine(), self.takes / 2);
        let all = batches.into_iter().map(|batch: Vec<Rec>| world.invoke_by(&engine, batch));
        let all = join_all(all);
        let outside = async {
            match dies_from_outside {
                true => world.clock.sleep(half).await,
                false => std::future::pending().await,
            }
        };
        let dies = select(Box::pin(dies.notified()), Box::pin(outside));
        let ended = world.clock.drive(select(Box::pin(all), dies)).await;
        if let Either::Left((outcomes, _)) = ended {
            let timed_out = |outcome: &Outcome| matches!(outcome, Outcome::TimedOut { .. });
            assert!(!outcomes.iter().flatten().any(timed_out), "it was started too late");
            let all_are = outcomes.iter().flatten().all(Outcome::is_acknowledged);
            for (at, outcome) in delivered.iter().flatten().zip(outcomes.iter().flatten()) {
                let message = &mut self.messages[*at];
                message.is_gone = outcome.is_acknowledged() && (all_are || !self.is_whole);
                message.gone_at = message.is_gone.then_some(message.receives);
            }
        }
        for at in delivered.iter().flatten() {
            let message = &mut self.messages[*at];
            if message.done_at.is_none() && self.world.ledger.executed(message.label) > 0 {
                message.done_at = Some(message.receives);
            }
        }
        self.world.clock.advance(40 * SECOND);
    }

    /// A receive of these records at which nothing of them is begun.
    pub(crate) fn receive_in_vain(&mut self, records: &[usize]) {
        for at in records {
            let message = &mut self.messages[*at];
            message.receives += u32::from(!message.is_gone);
        }
        self.world.clock.advance(40 * SECOND);
    }

    /// What became of the last receive of a record.
    pub(crate) async fn became(&mut self, at: usize) -> Receive {
        let message = &mut self.messages[at];
        if message.done_at.is_some() {
            return Receive::Done;
        }
        let owner = self.world.stored(message.label).await.and_then(|stored| stored.owner);
        let before = std::mem::replace(&mut message.lost, owner);
        if owner == before { Receive::Untried } else { Receive::Lost }
    }

    /// How often the handler of a record was called.
    pub(crate) fn calls(&self, at: usize) -> u32 {
        self.messages[at].calls.load(Ordering::Relaxed)
    }

    /// The records that do not kill, and are behind none that does in their group.
    fn innocent(&self) -> Vec<&Message> {
        let mut blocked = BTreeSet::new();
        let all = self.messages.iter().filter(|message| {
            let group = message.group;
            if message.kills {
                blocked.extend(group);
            }
            !message.kills && group.is_none_or(|group| !blocked.contains(group))
        });
        all.collect()
    }

    /// When a record is acknowledged or, where receives are not counted and one that kills keeps it from that, done.
    const fn end(&self, message: &Message) -> Option<u32> {
        if self.counts { message.gone_at } else { message.done_at }
    }

    pub(crate) fn are_done(&self) -> bool {
        self.innocent().iter().all(|message| self.end(message).is_some())
    }

    /// Delivers all together until those that do not kill are acknowledged: after how many receives they are, and how often
    /// one of them was called in vain. `None` if one is not acknowledged after so many.
    pub(crate) async fn all_together(mut self, outside: &[u32], most: u32) -> Option<(u32, u32)> {
        let all: Vec<usize> = (0..self.messages.len()).collect();
        for receive in 1..=most {
            if self.are_done() {
                break;
            }
            self.receive(std::slice::from_ref(&all), outside.contains(&receive)).await;
        }
        self.result()
    }

    /// After how many receives those that do not kill were acknowledged, and how often one of them was called in vain.
    pub(crate) fn result(&self) -> Option<(u32, u32)> {
        let mut worst = (0, 0);
        for message in self.innocent() {
            assert!(
                self.world.ledger.executed(message.label) < 2,
                "{} is done twice",
                message.label
            );
            let in_vain = message.calls.load(Ordering::Relaxed).saturating_sub(1);
            worst = (worst.0.max(self.end(message)?), worst.1.max(in_vain));
        }
        Some(worst)
    }
}
