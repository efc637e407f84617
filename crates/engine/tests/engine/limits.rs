//! What happens at the very instant of a limit: a millisecond more or less decides.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
    time::Duration,
};

use futures_util::future::select;
use lambda_idempotency_core::{
    clock::{BoxFuture, Clock, Timestamp},
    policy::{Lease, OnConflict},
    record::{IdempotencyRecord, Owner, Status},
    store::{Capabilities, Store, StoreError, StoreErrorKind, Verdict, Write},
};
use lambda_idempotency_engine::batch::Engine;
use lambda_idempotency_keys::Key;
use lambda_idempotency_testkit::{
    clock::ManualClock,
    deadlines::BrokenRule,
    faults::{Fault, GuardKind},
};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::support::{ROUND_TRIP, Rec, START, World, key, labels, ok, rec, slow};

const SECOND: Duration = Duration::from_secs(1);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The record of another worker that holds its key, clock skew included, until so much later.
fn held_for(world: &World, lasts: Duration) -> IdempotencyRecord {
    let mut record = IdempotencyRecord::new(Status::InProgress, START.plus(3600 * SECOND));
    record.owner = Some(Owner::from_bits(7));
    record.lease_until = Some(world.clock.now().plus(lasts).minus(world.policy.clock_skew));
    record
}

/// A record whose handler keeps the processor so long.
fn computing(label: &'static str, takes: Duration) -> Rec {
    rec(label, move |world: World, _| async move {
        world.clock.advance(takes);
        Ok(())
    })
}

#[tokio::test]
async fn completions_share_a_request_if_handlers_keep_the_processor_for_ten_milliseconds() {
    for (takes, requests) in [(0, 2), (10, 2), (11, 3)] {
        let world = World::new();
        let batch = vec![computing("a", ms(takes)), ok("b")];
        assert_eq!(world.deliver(batch).await, ["executed"; 2]);
        assert_eq!(world.store.write_calls(), requests, "{takes} ms");
    }
}

/// `b` computes between the ends of the other two, and then awaits.
#[tokio::test]
async fn completions_share_a_request_if_a_poll_between_them_takes_ten_milliseconds() {
    for (takes, requests) in [(0, 3), (10, 3), (11, 4)] {
        let world = World::new();
        let between = rec("b", move |world: World, _| async move {
            world.clock.advance(ms(takes));
            world.clock.sleep(SECOND).await;
            Ok(())
        });
        assert_eq!(world.deliver(vec![ok("a"), between, ok("c")]).await, ["executed"; 3]);
        assert_eq!(world.store.write_calls(), requests, "{takes} ms");
    }
}

/// A store whose requests are answered by another task: the invocation has to give way for that.
struct Remote {
    requests: mpsc::UnboundedSender<(Vec<Write>, oneshot::Sender<Vec<Verdict>>)>,
    /// Notified when a completion is sent.
    completes: Arc<Notify>,
}

impl Store for Remote {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn write<'a>(&'a self, writes: &'a [Write], _: Timestamp) -> BoxFuture<'a, Vec<Verdict>> {
        Box::pin(async move {
            let completes = |write: &Write| {
                write.record.as_ref().is_some_and(|record| record.status == Status::Completed)
            };
            let (answer, answered) = oneshot::channel();
            self.requests.send((writes.to_vec(), answer)).unwrap();
            if writes.iter().any(completes) {
                self.completes.notify_waiters();
            }
            answered.await.unwrap()
        })
    }

    fn read<'a>(
        &'a self,
        _: &'a [Key],
        _: Timestamp,
    ) -> BoxFuture<'a, Vec<Result<Option<IdempotencyRecord>, StoreError>>> {
        unreachable!("nothing is looked at")
    }
}

/// The completion of `a` was handed to the network when `b` and `c` go on.
#[tokio::test]
async fn a_completion_that_is_on_its_way_leaves_before_the_next_handler_is_polled() {
    let world = World::without_latency();
    let (requests, mut arrived) = mpsc::unbounded_channel();
    let completes = Arc::new(Notify::new());
    let woken = || (Arc::clone(&completes), world.clone());
    let (of_b, of_c) = (woken(), woken());
    let busy = rec("b", move |_, _| async move {
        of_b.0.notified().await;
        of_b.1.clock.advance(SECOND / 4);
        of_b.1.clock.sleep(SECOND).await;
        Ok(())
    });
    let last = rec("c", move |_, _| async move {
        of_c.0.notified().await;
        let stored = of_c.1.stored("a").await.unwrap();
        assert_eq!(stored.status, Status::Completed, "a kill now would repeat `a`");
        Ok(())
    });
    let store = Remote { requests, completes: Arc::clone(&completes) };
    let server = async {
        while let Some((writes, answer)) = arrived.recv().await {
            let until = world.clock.now().plus(SECOND);
            answer.send(world.store.write(&writes, until).await).unwrap();
        }
        unreachable!("the store lives as long as its invocation")
    };
    let invocation = world.invoke_on(store, vec![slow("a", SECOND), busy, last]);
    let both = select(Box::pin(invocation), Box::pin(server));
    let outcomes = world.clock.drive(both).await.factor_first().0;
    assert_eq!(labels(&outcomes), ["executed"; 3]);
}

#[tokio::test]
async fn a_key_that_is_free_only_when_handlers_are_stopped_is_not_waited_for() {
    for (until, outcome) in [(880, "returned"), (899, "busy")] {
        let mut world = World { timeout: Some(SECOND), ..World::new() };
        world.policy.on_conflict = OnConflict::Wait { up_to: Duration::MAX };
        world.store.inner().insert(key("a"), held_for(&world, ms(until)));
        assert_eq!(world.deliver(vec![ok("a")]).await, [outcome], "handlers have 900 ms");
        let is_waited_for = world.clock.now() > START.plus(ms(until));
        assert_eq!(is_waited_for, outcome == "returned", "{until} ms");
    }
}

#[tokio::test]
async fn a_record_that_waited_for_room_starts_at_the_last_instant_of_its_lease() {
    for (late, second) in [(0, "executed"), (1, "returned")] {
        let mut world = World { timeout: Some(60 * SECOND), ..World::new() };
        world.policy.lease = Lease::Renewed { length: 6 * SECOND };
        world.policy.concurrency = 1;
        let takes = 6 * SECOND - ROUND_TRIP + ms(late);
        let outcomes = world.deliver(vec![computing("a", takes), ok("b")]).await;
        assert_eq!(outcomes, ["executed", second]);
    }
}

/// As in a process that is frozen while the first handler runs.
#[tokio::test]
async fn a_result_that_is_ready_counts_up_to_the_last_instant_of_its_lease() {
    // It is too late to record the completion.
    for (late, second) in [(0, "completion_lost"), (1, "timed_out")] {
        let mut world = World::new();
        world.tolerates = &[BrokenRule::CalledTooLate];
        let lasts = 30 * SECOND - ROUND_TRIP + world.policy.lease_grace + ms(late);
        let woken = Arc::new(Notify::new());
        let wakes = Arc::clone(&woken);
        let frozen = rec("a", move |world: World, _| async move {
            world.clock.sleep(SECOND).await;
            wakes.notify_one();
            world.clock.advance(lasts - SECOND);
            Ok(())
        });
        let ready = rec("b", move |_, _| async move {
            woken.notified().await;
            Ok(())
        });
        assert_eq!(world.deliver(vec![ready, frozen]).await[0], second, "{late} ms late");
    }
}

/// The renewals of `b` are throttled while it waits for room.
#[tokio::test]
async fn a_waiting_claim_whose_lease_has_ended_is_undone_while_others_run() {
    let mut world = World { timeout: Some(60 * SECOND), ..World::new() };
    world.policy.lease = Lease::Renewed { length: 6 * SECOND };
    world.policy.concurrency = 1;
    let refused = Fault::refuse(StoreErrorKind::Throttled).guarded_by(GuardKind::Unchanged);
    world.store.inject(refused.for_key(&key("b")).always());
    let runs_on = rec("a", |world: World, _| async move {
        world.clock.sleep(6 * SECOND - ROUND_TRIP).await;
        assert!(world.stored("b").await.is_some(), "its last instant");
        world.clock.sleep(ms(100)).await;
        assert_eq!(world.stored("b").await, None, "another worker may have it");
        Ok(())
    });
    assert_eq!(world.deliver(vec![runs_on, ok("b")]).await, ["executed", "returned"]);
}

/// Counts how often the time is asked for.
#[derive(Clone)]
struct Counting {
    clock: ManualClock,
    asked: Arc<AtomicUsize>,
}

impl Clock for Counting {
    fn now(&self) -> Timestamp {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.clock.now()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

/// The machine is asked with the time of each question, so these are counted.
#[tokio::test]
async fn a_batch_that_is_polled_while_nothing_has_happened_does_not_ask_its_machine() {
    const POLLS: usize = 10;
    let world = World::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let clock = Counting { clock: world.clock.clone(), asked: Arc::clone(&asked) };
    let engine = Engine::new(world.store.clone()).with_clock(clock);
    let mut batch = pin!(world.invoke_by(&engine, vec![slow("a", Duration::from_secs(5))]));
    let mut poll = || batch.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    asked.store(0, Ordering::Relaxed);
    for _ in 0..POLLS {
        assert!(poll().is_pending());
    }
    assert_eq!(
        asked.load(Ordering::Relaxed),
        2 * POLLS,
        "is it time, and when are handlers polled"
    );
    let outcomes = world.clock.drive(batch).await;
    assert!(outcomes.iter().all(|outcome| outcome.is_acknowledged()));
}
