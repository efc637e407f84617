//! Small worlds of invocations that run beside each other, and of those that want isolation.

use std::{
    future::poll_fn,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use lambda_idempotency_testkit::crashing::drop_after;
use shuttle::future::{JoinHandle, block_on, spawn, yield_now};

use crate::{
    clock::Timestamp,
    process::{Isolation, Place, Until},
};

const NOW: Timestamp = Timestamp::from_secs(1_000);
/// How long a place counts that is asked for at `now`.
pub(crate) fn until(now: Timestamp) -> Until {
    Until { taken: now.plus(Duration::from_secs(30)), waiting: now.plus(Duration::from_secs(10)) }
}

/// The steps of the real code; a mutant gets one of them wrong.
pub(crate) trait Steps: 'static {
    fn ask(
        isolation: &Arc<Isolation>,
        is_isolated: bool,
        now: Timestamp,
    ) -> (Place, Result<(), Timestamp>) {
        isolation.ask(is_isolated, until(now), now)
    }

    fn ask_again(place: &Place, now: Timestamp) -> Result<(), Timestamp> {
        place.ask(until(now), now)
    }

    fn poll_changed(place: &Place, context: &Context<'_>) -> Poll<()> {
        place.poll_changed(context)
    }

    fn give_up(place: Place) {
        drop(place);
    }

    /// What the end of an invocation does to a place that it waits for.
    fn cancel(place: Place) {
        Self::give_up(place);
    }
}

pub(crate) struct Real;

impl Steps for Real {}

/// A place as an invocation has it.
struct Guard<S: Steps> {
    place: Option<Place>,
    is_taken: bool,
    steps: PhantomData<fn(S)>,
}

impl<S: Steps> Drop for Guard<S> {
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            if self.is_taken { S::give_up(place) } else { S::cancel(place) }
        }
    }
}

/// One process. Its counters are not points at which a thread can be interrupted.
#[derive(Clone, Default)]
struct World {
    isolation: Arc<Isolation>,
    /// How many invocations have something at stake.
    at_stake: Arc<AtomicUsize>,
    /// How many of them are isolated.
    isolated: Arc<AtomicUsize>,
}

impl World {
    /// Waits for a place.
    async fn enter<S: Steps>(&self, is_isolated: bool, now: Timestamp) -> Guard<S> {
        let (place, mut asked) = S::ask(&self.isolation, is_isolated, now);
        let mut guard = Guard { place: Some(place), is_taken: false, steps: PhantomData };
        while asked.is_err() {
            let place = guard.place.as_ref().unwrap();
            poll_fn(|context| S::poll_changed(place, context)).await;
            asked = S::ask_again(place, now);
        }
        guard.is_taken = true;
        guard
    }

    /// An invocation that works in its place.
    async fn invocation<S: Steps>(self, is_isolated: bool, now: Timestamp) {
        let guard = self.enter::<S>(is_isolated, now).await;
        let others = self.at_stake.fetch_add(1, Ordering::SeqCst);
        let isolated = self.isolated.fetch_add(usize::from(is_isolated), Ordering::SeqCst);
        assert!(isolated == 0 && (!is_isolated || others == 0), "beside an isolated one");
        yield_now().await;
        self.isolated.fetch_sub(usize::from(is_isolated), Ordering::SeqCst);
        self.at_stake.fetch_sub(1, Ordering::SeqCst);
        drop(guard);
    }
}

fn join(tasks: impl IntoIterator<Item = JoinHandle<()>>) {
    tasks.into_iter().for_each(|task| block_on(task).unwrap());
}

/// All get their place, and an isolated one has no other beside it.
pub(crate) fn everybody_enters<S: Steps>(shared: usize, isolated: usize) {
    let world = World::default();
    let sides = [vec![false; shared], vec![true; isolated]].concat();
    let all = sides.into_iter().map(|side| spawn(world.clone().invocation::<S>(side, NOW)));
    join(all.collect::<Vec<_>>());
    assert_eq!(world.isolation.extent(), 0, "places that were not given up");
}

/// While one waits for isolation, others do not enter before it.
pub(crate) fn nobody_is_overtaken<S: Steps>() {
    let world = World::default();
    let (first, asked) = S::ask(&world.isolation, false, NOW);
    assert_eq!(asked, Ok(()));
    let (waits, asked) = S::ask(&world.isolation, true, NOW);
    assert_eq!(asked, Err(until(NOW).taken));
    let entered = Arc::new(AtomicUsize::new(0));
    let others = [(); 2].map(|()| {
        let (world, entered) = (world.clone(), Arc::clone(&entered));
        spawn(async move {
            let guard = world.enter::<S>(false, NOW).await;
            entered.fetch_add(1, Ordering::SeqCst);
            drop(guard);
        })
    });
    let leaves = spawn(async move { S::give_up(first) });
    join([leaves]);
    assert_eq!(S::ask_again(&waits, NOW), Ok(()), "it was overtaken");
    assert_eq!(entered.load(Ordering::SeqCst), 0, "it was overtaken");
    S::give_up(waits);
    join(others);
}

/// One that waits for isolation is dropped, wherever it is then, and the others go on.
pub(crate) fn a_dropped_one_holds_nobody_up<S: Steps>(polls: usize) {
    let world = World::default();
    let first = spawn(world.clone().invocation::<S>(false, NOW));
    let of_victim = world.clone();
    let victim = spawn(async move {
        drop_after(polls, of_victim.enter::<S>(true, NOW)).await;
    });
    let last = spawn(world.invocation::<S>(false, NOW));
    join([first, victim, last]);
}

/// One that has a place runs on after its end, and does not hold up the others.
pub(crate) fn a_place_that_lapsed_holds_nobody_up<S: Steps>() {
    let world = World::default();
    let (zombie, asked) = S::ask(&world.isolation, true, NOW);
    assert_eq!(asked, Ok(()));
    let later = until(NOW).taken.plus(Duration::from_millis(1));
    let others = [false, true, false].map(|side| spawn(world.clone().invocation::<S>(side, later)));
    let ends = spawn(async move { S::give_up(zombie) });
    join(others);
    join([ends]);
}

/// One that waits for isolation for longer than it said does not hold up the others either.
pub(crate) fn a_wait_that_is_over_holds_nobody_up<S: Steps>() {
    let world = World::default();
    let (_first, asked) = S::ask(&world.isolation, false, NOW);
    assert_eq!(asked, Ok(()));
    let (_zombie, asked) = S::ask(&world.isolation, true, NOW);
    assert_eq!(asked, Err(until(NOW).taken));
    let end = until(NOW).waiting;
    let (last, asked) = S::ask(&world.isolation, false, end);
    assert_eq!(asked, Err(end), "it waits for as long as that one");
    let asked = S::ask_again(&last, end.plus(Duration::from_millis(1)));
    assert_eq!(asked, Ok(()), "it waits for one that has given up");
}
