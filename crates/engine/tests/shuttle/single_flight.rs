//! Small worlds of invocations with one key.

use std::{sync::Arc, time::Duration};

use lambda_idempotency_testkit::crashing::drop_after;
use shuttle::{
    future::{JoinHandle, block_on, spawn, yield_now},
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::{
    clock::Timestamp,
    key::Key,
    process::{Joined, SingleFlight},
    protocol::{Guard, Protocol},
    record::{IdempotencyRecord, Status},
};

const NOW: Timestamp = Timestamp::from_secs(1_000);
const END: Timestamp = Timestamp::from_secs(1_030);

/// The invocations of one process, all with one key.
#[derive(Clone, Default)]
struct World {
    single_flight: Arc<SingleFlight>,
    /// The number of invocations that handle the key now.
    working: Arc<AtomicUsize>,
    /// The number of times that an invocation led.
    leads: Arc<AtomicUsize>,
}

enum Ended {
    Led,
    Followed(Arc<IdempotencyRecord>),
}

impl World {
    /// An invocation, which follows until it gets a record or leads. A leader gives `record` to its
    /// followers.
    async fn invocation<P: Protocol>(
        self,
        now: Timestamp,
        until: Timestamp,
        record: Option<Arc<IdempotencyRecord>>,
    ) -> Ended {
        let key = Key::from_text("k");
        loop {
            let follow = match P::join(&self.single_flight, &key, now, until) {
                Joined::Leader(lead) => {
                    self.work(Guard::<P>::new(lead), record).await;
                    return Ended::Led;
                }
                Joined::Follower(follow) => follow,
            };
            assert!(now <= follow.until(), "an invocation follows an expired lead");
            if let Some(record) = follow.finished().await {
                return Ended::Followed(record);
            }
        }
    }

    async fn work<P: Protocol>(&self, mut lead: Guard<P>, record: Option<Arc<IdempotencyRecord>>) {
        let working = Working::new(&self.working);
        self.leads.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        if let Some(record) = record {
            lead.learn(record);
        }
        drop(working);
        lead.end();
    }
}

/// Counts an invocation as working until it is dropped.
struct Working(Arc<AtomicUsize>);

impl Working {
    fn new(working: &Arc<AtomicUsize>) -> Self {
        assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two invocations lead one key");
        Self(Arc::clone(working))
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn join<T>(tasks: Vec<JoinHandle<T>>) -> Vec<T> {
    tasks.into_iter().map(|task| block_on(task).unwrap()).collect()
}

/// No leader knows a record, so all invocations lead, one after the other.
pub(crate) fn each_leads_in_turn<P: Protocol>(invocations: usize) {
    let world = World::default();
    let tasks = (0..invocations).map(|_| spawn(world.clone().invocation::<P>(NOW, END, None)));
    let ended = join(tasks.collect());
    assert!(ended.iter().all(|ended| matches!(ended, Ended::Led)));
    assert_eq!(world.leads.load(Ordering::SeqCst), invocations);
}

/// The followers of a leader that knows a record get it.
pub(crate) fn followers_get_the_record<P: Protocol>() {
    let world = World::default();
    let record = Arc::new(IdempotencyRecord::new(Status::Completed, END));
    let key = Key::from_text("k");
    let Joined::Leader(lead) = P::join(&world.single_flight, &key, NOW, END) else {
        panic!("no other invocation leads")
    };
    // Two followers join while the leader works.
    let follow = |world: &World| match P::join(&world.single_flight, &key, NOW, END) {
        Joined::Follower(follow) => spawn(follow.finished()),
        Joined::Leader(_) => panic!("two invocations lead one key"),
    };
    let followers = vec![follow(&world), follow(&world)];
    // A third invocation joins at any time.
    let late = spawn(world.clone().invocation::<P>(NOW, END, Some(Arc::clone(&record))));
    let leader = {
        let (world, record) = (world.clone(), Arc::clone(&record));
        spawn(async move { world.work(Guard::<P>::new(lead), Some(record)).await })
    };
    for got in join(followers) {
        assert_eq!(got, Some(Arc::clone(&record)), "a follower did not get the record");
    }
    join(vec![leader]);
    match block_on(late).unwrap() {
        Ended::Followed(got) => assert_eq!(got, record),
        Ended::Led => assert_eq!(world.leads.load(Ordering::SeqCst), 2),
    }
}

/// The first invocation is dropped after `polls` polls.
pub(crate) fn a_dropped_leader_wakes_its_followers<P: Protocol>(polls: usize) {
    let world = World::default();
    let victim = world.clone().invocation::<P>(NOW, END, None);
    let victim = spawn(async move {
        drop_after(polls, victim).await;
    });
    let others = (0..2).map(|_| spawn(world.clone().invocation::<P>(NOW, END, None)));
    let ended = join(others.collect());
    assert!(ended.iter().all(|ended| matches!(ended, Ended::Led)));
    join(vec![victim]);
}

/// An invocation outlives its lease, another one takes over the lead, and then the first one ends.
pub(crate) fn an_expired_leader_does_not_block_others<P: Protocol>() {
    let later = END.plus(Duration::from_millis(1));
    let world = World::default();
    let key = Key::from_text("k");
    let Joined::Leader(expired) = P::join(&world.single_flight, &key, NOW, END) else {
        panic!("no other invocation leads")
    };
    let expired = Guard::<P>::new(expired);
    // No timer wakes its follower: the next invocation that joins after the lease frees it.
    let Joined::Follower(follow) = P::join(&world.single_flight, &key, END, END) else {
        panic!("the lease has not ended")
    };
    let until = later.plus(Duration::from_secs(30));
    let mut tasks: Vec<_> =
        (0..2).map(|_| spawn(world.clone().invocation::<P>(later, until, None))).collect();
    assert_eq!(block_on(follow.finished()), None, "the follower has to join again");
    let ends = spawn(async move { expired.end() });
    tasks.push(spawn(world.invocation::<P>(later, until, None)));
    let ended = join(tasks);
    assert!(ended.iter().all(|ended| matches!(ended, Ended::Led)));
    join(vec![ends]);
}
