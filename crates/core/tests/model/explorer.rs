//! The world as a [`Model`]: where it begins and every step it can take.

use std::marker::PhantomData;

use stateright::{Model, Property};

use crate::{
    canonical::canonical,
    packed::Intent,
    properties,
    protocol::Protocol,
    setup::{SKEW, Setup},
    state::{Faults, Job, KeyWorld, World},
    step::Step,
    witness::Event,
    worker::Resolve,
};

/// Explores a protocol in a world of this size.
#[derive(Debug)]
pub struct Explorer<P> {
    pub setup: Setup,
    protocol: PhantomData<P>,
}

/// A step. `now` is what the clock of whoever acts reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A worker takes a delivery and sends its claim.
    Take { worker: usize, key: usize, now: u8 },
    /// A worker's write reaches the store; unless answers travel, the worker learns the answer.
    Land { worker: usize, key: usize, now: u8 },
    /// An answer arrives.
    Answer { worker: usize, key: usize, now: u8 },
    /// A worker's write gets no answer.
    Unanswered { worker: usize, key: usize, resolve: Resolve, now: u8 },
    /// A handler ends, is not started, or is to have longer.
    Settle { worker: usize, key: usize, intent: Intent, now: u8 },
    /// A worker dies.
    Crash { worker: usize },
    /// A late write, or a copy of one, reaches the store.
    Stray { key: usize, index: usize },
    /// The server collects an expired record.
    Sweep { key: usize },
}

impl<P: Protocol> Explorer<P> {
    pub fn new(setup: Setup) -> Self {
        Self { setup, protocol: PhantomData }
    }

    /// What a worker may do about a key; `push` takes the actions.
    fn worker_actions(
        &self,
        world: &World,
        worker: usize,
        key: usize,
        push: &mut impl FnMut(Action),
    ) {
        let Some(call) = world.keys[key].calls[worker] else {
            if world.keys[key].source.queued > 0 {
                readings(world.time, |now| push(Action::Take { worker, key, now }));
            }
            return;
        };
        let unanswered = world.faults.timeouts > 0;
        readings(world.time, |now| {
            if call.answer.is_some() {
                push(Action::Answer { worker, key, now });
            } else if call.request.is_some() {
                push(Action::Land { worker, key, now });
            }
            if let Some(request) = call.request.filter(|_| unanswered) {
                let mut unanswered =
                    |resolve| push(Action::Unanswered { worker, key, resolve, now });
                unanswered(Resolve::Retry);
                unanswered(Resolve::GiveUp);
                if self.setup.regret && request.intent == Intent::Complete {
                    unanswered(Resolve::Regret);
                }
            }
            if call.job == Job::Running {
                let mut settle = |intent| push(Action::Settle { worker, key, intent, now });
                settle(Intent::Complete);
                if self.setup.put_back {
                    settle(Intent::PutBack);
                }
                if world.faults.errors > 0 {
                    settle(Intent::Release);
                    if self.setup.remember {
                        settle(Intent::Remember);
                    }
                }
                let until = now + self.setup.renewal;
                if self.setup.renewal > 0 && until > call.held.lease() && now <= call.held.lease() {
                    settle(Intent::Renew(until));
                }
            }
        });
    }
}

impl<P: Protocol> Model for Explorer<P> {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let key = KeyWorld::new(self.setup.workers, self.setup.deliveries);
        vec![World { time: 0, faults: self.setup.faults, keys: vec![key; self.setup.keys] }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.keys.iter().any(|key| key.flaw.is_some()) {
            return;
        }
        if world.time < self.setup.end {
            actions.push(Action::Tick);
        }
        for worker in 0..self.setup.workers {
            for key in 0..self.setup.keys {
                self.worker_actions(world, worker, key, &mut |action| actions.push(action));
            }
            let works = world.keys.iter().any(|key| key.calls[worker].is_some());
            if works && world.faults.crashes > 0 {
                actions.push(Action::Crash { worker });
            }
        }
        for (key, of_key) in world.keys.iter().enumerate() {
            if of_key.store.is_some_and(|record| world.time + SKEW > record.expires()) {
                actions.push(Action::Sweep { key });
            }
            // A stray that changes nothing might as well never arrive.
            let mut probe = of_key.clone();
            let step = Step::<P>::new(&self.setup, world.time, &mut probe);
            for (index, stray) in of_key.strays.iter().enumerate() {
                if step.would_change(stray) {
                    actions.push(Action::Stray { key, index });
                }
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        let World { time, faults, keys } = &mut next;
        let mut step = |key: usize, act: &mut dyn FnMut(&mut Step<'_, P>)| {
            act(&mut Step::new(&self.setup, *time, &mut keys[key]));
        };
        match action {
            Action::Tick => *time += 1,
            Action::Take { worker, key, now } => step(key, &mut |step| step.take(worker, now)),
            Action::Land { worker, key, now } => step(key, &mut |step| {
                let mut call = step.key.calls[worker].expect("it sent something");
                let answer = step.land(&call.request.expect("it sent something"));
                if step.setup.answers_travel {
                    call.answer = Some(answer);
                    step.key.calls[worker] = Some(call);
                } else {
                    step.react(worker, call, answer, now);
                }
            }),
            Action::Answer { worker, key, now } => step(key, &mut |step| {
                let call = step.key.calls[worker].expect("it asked something");
                step.react(worker, call, call.answer.expect("it was answered"), now);
            }),
            Action::Unanswered { worker, key, resolve, now } => {
                faults.timeouts -= 1;
                step(key, &mut |step| {
                    let call = step.key.calls[worker].expect("it sent something");
                    step.unanswered(worker, call, resolve, now);
                });
            }
            Action::Settle { worker, key, intent, now } => {
                spend_error(faults, intent);
                step(key, &mut |step| {
                    let call = step.key.calls[worker].expect("it holds the key");
                    step.settle(worker, call, intent, now);
                });
            }
            Action::Crash { worker } => {
                faults.crashes -= 1;
                for key in 0..self.setup.keys {
                    step(key, &mut |step| step.crash(worker));
                }
            }
            Action::Stray { key, index } => step(key, &mut |step| {
                let stray = step.key.strays.remove(index);
                step.setup.witness.saw(Event::StrayLanded);
                step.land(&stray);
            }),
            Action::Sweep { key } => step(key, &mut |step| step.sweep()),
        }
        Some(canonical(next))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all(&self.setup)
    }
}

/// Each instant that a clock may show at this true time.
fn readings(time: u8, mut each: impl FnMut(u8)) {
    for now in time..=time + SKEW {
        each(now);
    }
}

fn spend_error(faults: &mut Faults, intent: Intent) {
    if matches!(intent, Intent::Release | Intent::Remember) {
        faults.errors -= 1;
    }
}
