//! The world as a [`Model`]: where it begins and what each step makes of it.

use std::marker::PhantomData;

use stateright::{Model, Property};

use crate::{
    canonical::canonical,
    packed::Intent,
    properties,
    protocol::Protocol,
    setup::Setup,
    state::{KeyWorld, World},
    step::Step,
    witness::Event,
    worker::Resolve,
};

/// Explores a protocol in a world of this size.
#[derive(Debug)]
pub(crate) struct Explorer<P> {
    pub(crate) setup: Setup,
    protocol: PhantomData<P>,
}

/// A step. `now` is what the clock of whoever acts reads; `lost` says that the write which is sent
/// gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time goes on.
    Tick,
    /// A worker takes a delivery and sends its claim.
    Take { worker: usize, key: usize, now: u8, lost: Option<Resolve> },
    /// A worker's write reaches the store; unless answers travel, the worker learns the answer.
    Land { worker: usize, key: usize, now: u8 },
    /// An answer arrives.
    Answer { worker: usize, key: usize, now: u8 },
    /// A write in flight gets no answer.
    Unanswered { worker: usize, key: usize, resolve: Resolve, now: u8 },
    /// A handler ends, is not started, or is to have longer.
    Settle { worker: usize, key: usize, intent: Intent, now: u8, lost: Option<Resolve> },
    /// A worker dies.
    Crash { worker: usize },
    /// A late write, or a copy of one, reaches the store.
    Stray { key: usize, index: usize },
    /// The server collects an expired record.
    Sweep { key: usize },
}

impl<P: Protocol> Explorer<P> {
    pub(crate) fn new(setup: Setup) -> Self {
        Self { setup, protocol: PhantomData }
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
        if world.keys.iter().any(|key| key.flaws.any()) {
            return;
        }
        if world.time < self.setup.end {
            actions.push(Action::Tick);
        }
        for worker in 0..self.setup.workers {
            for key in 0..self.setup.keys {
                self.worker_actions(world, worker, key, actions);
            }
            let works = world.keys.iter().any(|key| key.calls[worker].is_some());
            if works && world.faults.crashes > 0 {
                actions.push(Action::Crash { worker });
            }
        }
        for key in 0..self.setup.keys {
            self.key_actions(world, key, actions);
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
            Action::Take { worker, key, now, lost } => {
                faults.timeouts -= u8::from(lost.is_some());
                step(key, &mut |step| {
                    step.take(worker, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Land { worker, key, now } => step(key, &mut |step| {
                step.arrive(worker, now);
                step.send(worker, None, now);
            }),
            Action::Answer { worker, key, now } => step(key, &mut |step| {
                let call = step.key.calls[worker].expect("it asked something");
                step.react(worker, call, call.answer.expect("it was answered"), now);
            }),
            Action::Unanswered { worker, key, resolve, now } => {
                faults.timeouts -= 1;
                step(key, &mut |step| step.send(worker, Some(resolve), now));
            }
            Action::Settle { worker, key, intent, now, lost } => {
                faults.timeouts -= u8::from(lost.is_some());
                faults.errors -= u8::from(matches!(intent, Intent::Release | Intent::Remember));
                step(key, &mut |step| {
                    let call = step.key.calls[worker].expect("it holds the key");
                    step.settle(worker, call, intent, now);
                    step.send(worker, lost, now);
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
        properties::all()
    }
}
