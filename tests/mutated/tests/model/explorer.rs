//! The world as a [`Model`]: its first state, and the effect of each step.

use stateright::{Model, Property};

use crate::{
    canonical::canonical, packed::Payload, powertools::Fate, properties, protocol::Protocol,
    request::Intent, sending::Resolve, setup::Setup, state::World, step::Step, witness::Event,
};

/// Explores a protocol in a world of this size.
#[derive(Debug)]
pub(crate) struct Explorer {
    pub(crate) protocol: Protocol,
    pub(crate) setup: Setup,
}

/// A step. `now` is the reading of the actor's clock; with `lost`, the write that is sent gets no
/// answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time advances by one tick.
    Tick,
    /// A worker takes a delivery, and sends its claim.
    Take { worker: usize, payload: Payload, now: u8, lost: Option<Resolve> },
    /// A worker's write reaches the store. Unless answers are slow, the worker gets the answer at once.
    Land { worker: usize, now: u8 },
    /// An answer arrives.
    Answer { worker: usize, now: u8 },
    /// A write in flight gets no answer.
    Unanswered { worker: usize, resolve: Resolve, now: u8 },
    /// A waiting worker checks whether the key is free.
    Look { worker: usize, now: u8 },
    /// A waiting worker has no time left.
    StopWaiting { worker: usize },
    /// A handler starts.
    Start { worker: usize, now: u8 },
    /// A handler ends, is not started, or has its lease renewed.
    Settle { worker: usize, intent: Intent, now: u8, lost: Option<Resolve> },
    /// A handler is dropped at the deadline.
    Drop { worker: usize, now: u8, lost: Option<Resolve> },
    /// A worker dies.
    Crash { worker: usize },
    /// A late write, or a copy of one, reaches the store.
    Stray { index: usize },
    /// The server collects an expired record.
    Sweep,
    /// A function that uses Powertools takes a delivery and claims its key.
    StrangerTakes { function: usize, now: u8 },
    /// The handler of a function that uses Powertools ends.
    StrangerEnds { function: usize, fate: Fate },
}

impl Explorer {
    pub(crate) fn new(protocol: Protocol, setup: Setup) -> Self {
        Self { protocol, setup }
    }

    fn step(&self, world: &mut World, act: impl FnOnce(&mut Step<'_>)) {
        act(&mut Step::new(self.protocol, &self.setup, world.time, &mut world.key));
    }
}

impl Model for Explorer {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World { time: 0, faults: self.setup.faults, key: self.setup.key() }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.key.flaws.any() {
            return;
        }
        if world.time < self.setup.end {
            actions.push(Action::Tick);
        }
        for worker in 0..self.setup.workers {
            self.worker_actions(world, worker, actions);
            if world.key.calls[worker].is_some() && world.faults.crashes > 0 {
                actions.push(Action::Crash { worker });
            }
        }
        self.key_actions(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        let world = &mut next;
        match action {
            Action::Tick => {
                world.time += 1;
                self.step(world, |step| {
                    step.stop_what_lapsed();
                    step.kill_strangers();
                });
            }
            Action::Take { worker, payload, now, lost } => {
                world.faults.timeouts -= u8::from(lost.is_some());
                self.step(world, |step| {
                    step.take(worker, payload, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Land { worker, now } => self.step(world, |step| {
                step.arrive(worker, now);
                step.send(worker, None, now);
            }),
            Action::Answer { worker, now } => self.step(world, |step| {
                let call = step.key.calls[worker].expect("the worker has a call");
                step.react(worker, call, call.answer.expect("the call has an answer"), now);
            }),
            Action::Unanswered { worker, resolve, now } => {
                world.faults.timeouts -= 1;
                self.step(world, |step| step.send(worker, Some(resolve), now));
            }
            Action::Look { worker, now } => self.step(world, |step| {
                step.look(worker, now);
                step.send(worker, None, now);
            }),
            Action::StopWaiting { worker } => {
                self.step(world, |step| step.stop_waiting(worker));
            }
            Action::Start { worker, now } => self.step(world, |step| {
                let call = step.key.calls[worker].expect("the worker holds the key");
                step.start(worker, call, now);
                step.send(worker, None, now);
            }),
            Action::Settle { worker, intent, now, lost } => {
                world.faults.timeouts -= u8::from(lost.is_some());
                let failed = matches!(intent, Intent::Release | Intent::FailPermanently);
                world.faults.errors -= u8::from(failed);
                self.step(world, |step| {
                    let call = step.key.calls[worker].expect("the worker holds the key");
                    step.settle(worker, call, intent, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Drop { worker, now, lost } => {
                world.faults.timeouts -= u8::from(lost.is_some());
                self.step(world, |step| {
                    step.drop_handler(worker, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Crash { worker } => {
                world.faults.crashes -= 1;
                self.step(world, |step| step.crash(worker));
            }
            Action::Stray { index } => {
                self.step(world, |step| {
                    let stray = step.key.strays.remove(index);
                    step.setup.witness.saw(Event::StrayLanded);
                    step.land(&stray);
                });
            }
            Action::Sweep => {
                self.step(world, |step| step.sweep());
            }
            Action::StrangerTakes { function, now } => {
                self.step(world, |step| step.stranger_takes(function, now));
            }
            Action::StrangerEnds { function, fate } => {
                let (failed, died) = (fate == Fate::Fails, fate == Fate::Dies);
                world.faults.errors -= u8::from(failed);
                world.faults.crashes -= u8::from(died);
                let now = world.time;
                self.step(world, |step| step.stranger_ends(function, fate, now));
            }
        }
        Some(canonical(next, self.setup.fences))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(&self.setup)
    }
}
