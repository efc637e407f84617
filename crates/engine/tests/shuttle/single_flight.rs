//! Small worlds of invocations that want one key.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

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

/// The invocations of one process, which all want one key.
#[derive(Clone, Default)]
struct World {
    single_flight: Arc<SingleFlight>,
    /// How many work on the key now.
    working: Arc<AtomicUsize>,
    /// How often the store was asked.
    asked: Arc<AtomicUsize>,
}

enum Ended {
    Led,
    Told(Arc<IdempotencyRecord>),
}

impl World {
    /// An invocation: follows until it is told or leads, and then works. The leader tells `record`.
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
            assert!(now <= follow.until(), "nobody follows a lead that has lapsed");
            if let Some(record) = follow.finished().await {
                return Ended::Told(record);
            }
        }
    }

    async fn work<P: Protocol>(&self, mut lead: Guard<P>, record: Option<Arc<IdempotencyRecord>>) {
        let working = Working::new(&self.working);
        self.asked.fetch_add(1, Ordering::SeqCst);
        yield_now().await;
        if let Some(record) = record {
            lead.learn(record);
        }
        drop(working);
        lead.end();
    }
}

/// Somebody at work, until it is dropped.
struct Working(Arc<AtomicUsize>);

impl Working {
    fn new(working: &Arc<AtomicUsize>) -> Self {
        assert_eq!(working.fetch_add(1, Ordering::SeqCst), 0, "two work on one key");
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

/// All get the key, one after the other; who is not told leads in the end.
pub(crate) fn each_leads_in_turn<P: Protocol>(invocations: usize) {
    let world = World::default();
    let tasks = (0..invocations).map(|_| spawn(world.clone().invocation::<P>(NOW, END, None)));
    let ended = join(tasks.collect());
    assert!(ended.iter().all(|ended| matches!(ended, Ended::Led)));
    assert_eq!(world.asked.load(Ordering::SeqCst), invocations);
}

/// Whoever followed a leader that knows the answer is told, and asks nobody.
pub(crate) fn followers_are_told<P: Protocol>() {
    let world = World::default();
    let record = Arc::new(IdempotencyRecord::new(Status::Completed, END));
    let key = Key::from_text("k");
    let Joined::Leader(lead) = P::join(&world.single_flight, &key, NOW, END) else {
        panic!("nobody else is there")
    };
    // They come while the leader is still at work ...
    let follow = |world: &World| match P::join(&world.single_flight, &key, NOW, END) {
        Joined::Follower(follow) => spawn(follow.finished()),
        Joined::Leader(_) => panic!("two lead one key"),
    };
    let followers = vec![follow(&world), follow(&world)];
    // ... and one more at any time.
    let late = spawn(world.clone().invocation::<P>(NOW, END, Some(Arc::clone(&record))));
    let leader = {
        let (world, record) = (world.clone(), Arc::clone(&record));
        spawn(async move { world.work(Guard::<P>::new(lead), Some(record)).await })
    };
    for told in join(followers) {
        assert_eq!(told, Some(Arc::clone(&record)), "a follower was not told");
    }
    join(vec![leader]);
    match block_on(late).unwrap() {
        Ended::Told(told) => assert_eq!(told, record),
        Ended::Led => assert_eq!(world.asked.load(Ordering::SeqCst), 2),
    }
}

/// The invocation that boards first is dropped after `polls` polls, wherever it is then.
pub(crate) fn a_dropped_leader_strands_nobody<P: Protocol>(polls: usize) {
    let world = World::default();
    let victim = world.clone().invocation::<P>(NOW, END, None);
    let victim = spawn(async move {
        let mut victim = pin!(victim);
        let mut left = polls;
        poll_fn(|context| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            let ended = victim.as_mut().poll(context).is_ready();
            // Nobody need wake it for its end.
            if ended || left == 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    let others = (0..2).map(|_| spawn(world.clone().invocation::<P>(NOW, END, None)));
    let ended = join(others.collect());
    assert!(ended.iter().all(|ended| matches!(ended, Ended::Led)));
    join(vec![victim]);
}

/// An invocation outlives its lease, another takes its place, and then it ends after all.
pub(crate) fn a_zombie_holds_nobody_up<P: Protocol>() {
    let later = END.plus(Duration::from_millis(1));
    let world = World::default();
    let key = Key::from_text("k");
    let Joined::Leader(zombie) = P::join(&world.single_flight, &key, NOW, END) else {
        panic!("nobody else is there")
    };
    let zombie = Guard::<P>::new(zombie);
    // Its follower knows no later time: whoever boards after the lease frees it.
    let Joined::Follower(follow) = P::join(&world.single_flight, &key, END, END) else {
        panic!("the lease stands")
    };
    let until = later.plus(Duration::from_secs(30));
    let mut tasks: Vec<_> =
        (0..2).map(|_| spawn(world.clone().invocation::<P>(later, until, None))).collect();
    assert_eq!(block_on(follow.finished()), None, "it is to look again");
    let ends = spawn(async move { zombie.end() });
    tasks.push(spawn(world.invocation::<P>(later, until, None)));
    let ended = join(tasks);
    assert!(ended.iter().all(|ended| matches!(ended, Ended::Led)));
    join(vec![ends]);
}
