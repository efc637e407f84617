//! The world as a [`Model`]: its first state, and the effect of each step.

use stateright::{Model, Property};

use crate::{
    canonical::canonical,
    packed::Payload,
    powertools::Fate,
    properties,
    protocol::{Protocol, Rule},
    request::Intent,
    sending::Resolve,
    setup::{Deadline, Setup},
    state::World,
    step::{Ended, Step},
    witness::Event,
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
    /// A worker takes a delivery, perhaps with another of the same key, and sends its claim.
    Take {
        worker: usize,
        key: usize,
        payload: Payload,
        follower: Option<Payload>,
        now: u8,
        lost: Option<Resolve>,
    },
    /// A worker's write reaches the store. Unless answers are slow, the worker gets the answer at once.
    Land { worker: usize, key: usize, now: u8 },
    /// An answer arrives.
    Answer { worker: usize, key: usize, now: u8 },
    /// A write in flight gets no answer.
    Unanswered { worker: usize, key: usize, resolve: Resolve, now: u8 },
    /// A waiting worker checks whether the key is free.
    Look { worker: usize, key: usize, now: u8 },
    /// A waiting worker has no time left.
    StopWaiting { worker: usize, key: usize },
    /// A handler starts.
    Start { worker: usize, key: usize, now: u8 },
    /// A handler ends, is not started, or has its lease renewed.
    Settle { worker: usize, key: usize, intent: Intent, now: u8, lost: Option<Resolve> },
    /// A handler is dropped at the deadline.
    Drop { worker: usize, key: usize, now: u8, lost: Option<Resolve> },
    /// A worker dies.
    Crash { worker: usize },
    /// A late write, or a copy of one, reaches the store.
    Stray { key: usize, index: usize },
    /// The server collects an expired record.
    Sweep { key: usize },
    /// A function that uses Powertools takes a delivery and claims its key.
    StrangerTakes { function: usize, key: usize, now: u8 },
    /// The handler of a function that uses Powertools ends.
    StrangerEnds { function: usize, key: usize, fate: Fate },
}

impl Explorer {
    pub(crate) fn new(protocol: Protocol, setup: Setup) -> Self {
        Self { protocol, setup }
    }

    /// Takes a step of one key, and returns how the step ended a delivery, if it did.
    fn step(
        &self,
        world: &mut World,
        key: usize,
        act: impl FnOnce(&mut Step<'_>),
    ) -> Option<Ended> {
        let (before, rest) = world.keys.split_at_mut(key);
        let mut step = Step::new(self.protocol, &self.setup, world.time, &mut rest[0]);
        step.in_order = !self.setup.ordered || before.iter().all(|key| key.effect.any());
        act(&mut step);
        step.ended
    }

    /// Takes a step of a worker. In an ordered batch the worker may then take the next record.
    fn work(
        &self,
        world: &mut World,
        worker: usize,
        key: usize,
        now: u8,
        act: &mut dyn FnMut(&mut Step<'_>),
    ) {
        let mut others = world.keys.iter().enumerate().filter(|(other, _)| *other != key);
        let alone = others.all(|(_, other)| other.calls[worker].is_none());
        let ended = self.step(world, key, |step| {
            step.alone = alone;
            act(step);
        });
        let ended = ended.filter(|_| self.setup.ordered);
        let Some(ended) = ended else { return };
        let done = matches!(ended, Ended::Acknowledged { .. });
        let next = key + 1;
        let continues = done || !self.protocol.keeps(Rule::StopsTheGroup);
        if continues && next < self.setup.keys && world.keys[next].source.queued[0] > 0 {
            self.work(world, worker, next, now, &mut |step| {
                step.take(worker, 0, None, now);
                step.send(worker, None, now);
            });
        }
        if !done {
            self.setup.witness.saw(Event::GroupStopped);
            let first = if self.protocol.keeps(Rule::ReportsTheFirst) { key } else { next };
            world.checkpoint = first;
        } else if next == self.setup.keys {
            world.checkpoint = next;
        }
    }
}

impl Model for Explorer {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let keys = vec![self.setup.key(); self.setup.keys];
        vec![World { time: 0, faults: self.setup.faults, checkpoint: 0, keys }]
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
            let first = world.keys[0].calls[worker];
            let dies =
                if self.setup.poison { first.is_some_and(|call| call.runs()) } else { works };
            if dies && world.faults.crashes > 0 {
                actions.push(Action::Crash { worker });
            }
        }
        for key in 0..self.setup.keys {
            self.key_actions(world, key, actions);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        let world = &mut next;
        match action {
            Action::Tick => {
                world.time += 1;
                for key in 0..self.setup.keys {
                    self.step(world, key, |step| {
                        step.stop_what_lapsed();
                        step.kill_strangers();
                    });
                }
            }
            Action::Take { worker, key, payload, follower, now, lost } => {
                world.faults.timeouts -= u8::from(lost.is_some());
                self.work(world, worker, key, now, &mut |step| {
                    step.take(worker, payload, follower, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Land { worker, key, now } => self.work(world, worker, key, now, &mut |step| {
                step.arrive(worker, now);
                step.send(worker, None, now);
            }),
            Action::Answer { worker, key, now } => {
                self.work(world, worker, key, now, &mut |step| {
                    let call = step.key.calls[worker].expect("the worker has a call");
                    step.react(worker, call, call.answer.expect("the call has an answer"), now);
                })
            }
            Action::Unanswered { worker, key, resolve, now } => {
                world.faults.timeouts -= 1;
                self.work(world, worker, key, now, &mut |step| {
                    step.send(worker, Some(resolve), now)
                });
            }
            Action::Look { worker, key, now } => self.work(world, worker, key, now, &mut |step| {
                step.look(worker, now);
                step.send(worker, None, now);
            }),
            Action::StopWaiting { worker, key } => {
                let now = world.time;
                self.work(world, worker, key, now, &mut |step| step.stop_waiting(worker, now));
            }
            Action::Start { worker, key, now } => self.work(world, worker, key, now, &mut |step| {
                let call = step.key.calls[worker].expect("the worker holds the key");
                step.start(worker, call, now);
                step.send(worker, None, now);
            }),
            Action::Settle { worker, key, intent, now, lost } => {
                world.faults.timeouts -= u8::from(lost.is_some());
                let failed = matches!(intent, Intent::Release | Intent::FailPermanently);
                world.faults.errors -= u8::from(failed);
                self.work(world, worker, key, now, &mut |step| {
                    let call = step.key.calls[worker].expect("the worker holds the key");
                    step.settle(worker, call, intent, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Drop { worker, key, now, lost } => {
                world.faults.timeouts -= u8::from(lost.is_some());
                let permanent = self.setup.deadline == Deadline::FailPermanently;
                self.work(world, worker, key, now, &mut |step| {
                    step.drop_handler(worker, permanent, now);
                    step.send(worker, lost, now);
                });
            }
            Action::Crash { worker } => {
                world.faults.crashes -= 1;
                if self.setup.poison {
                    for key in &mut world.keys[1..] {
                        let ran = key.calls[worker].is_some_and(|call| call.runs());
                        key.harmed += u8::from(ran);
                        if ran {
                            self.setup.witness.saw(Event::Harmed);
                        }
                    }
                }
                for key in 0..self.setup.keys {
                    self.step(world, key, |step| step.crash(worker));
                }
            }
            Action::Stray { key, index } => {
                self.step(world, key, |step| {
                    let stray = step.key.strays.remove(index);
                    step.setup.witness.saw(Event::StrayLanded);
                    step.land(&stray);
                });
            }
            Action::Sweep { key } => {
                self.step(world, key, |step| step.sweep());
            }
            Action::StrangerTakes { function, key, now } => {
                self.step(world, key, |step| step.stranger_takes(function, now));
            }
            Action::StrangerEnds { function, key, fate } => {
                let (failed, died) = (fate == Fate::Fails, fate == Fate::Dies);
                world.faults.errors -= u8::from(failed);
                world.faults.crashes -= u8::from(died);
                let now = world.time;
                self.step(world, key, |step| step.stranger_ends(function, fate, now));
            }
        }
        Some(canonical(next, self.setup.fences))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::of(&self.setup)
    }
}
