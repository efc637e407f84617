//! Every step that the world can take next.

use std::ops::RangeInclusive;

use crate::{
    explorer::{Action, Explorer},
    packed::Intent,
    protocol::Protocol,
    setup::{Network, SKEW},
    state::{Call, Job, World},
    step::Step,
    worker::Resolve,
};

impl<P: Protocol> Explorer<P> {
    /// What a worker may do about a key.
    pub(crate) fn worker_actions(
        &self,
        world: &World,
        worker: usize,
        key: usize,
        actions: &mut Vec<Action>,
    ) {
        let of_key = &world.keys[key];
        let Some(call) = of_key.calls[worker] else {
            if of_key.source.queued > 0 {
                for now in readings(world.time) {
                    for lost in self.losses(world, Intent::Claim) {
                        actions.push(Action::Take { worker, key, now, lost });
                    }
                }
            }
            return;
        };
        if call.job == Job::Running {
            for now in self.stamps(world.time) {
                for intent in self.intents(world, &call, now) {
                    for lost in self.losses(world, intent) {
                        actions.push(Action::Settle { worker, key, intent, now, lost });
                    }
                }
            }
        }
        let Some(request) = call.request else { return };
        for now in readings(world.time) {
            actions.push(if call.answer.is_some() {
                Action::Answer { worker, key, now }
            } else {
                Action::Land { worker, key, now }
            });
        }
        if world.faults.timeouts > 0 {
            for now in self.stamps(world.time) {
                for &resolve in self.resolutions(request.intent) {
                    actions.push(Action::Unanswered { worker, key, resolve, now });
                }
            }
        }
    }

    /// What happens to a key by itself.
    pub(crate) fn key_actions(&self, world: &World, key: usize, actions: &mut Vec<Action>) {
        let of_key = &world.keys[key];
        if of_key.store.is_some_and(|record| world.time + SKEW > record.expires()) {
            actions.push(Action::Sweep { key });
        }
        if of_key.strays.is_empty() {
            return;
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

    /// How the handler of a call that holds its key can go on.
    fn intents(&self, world: &World, call: &Call, now: u8) -> Vec<Intent> {
        let mut intents = vec![Intent::Complete];
        if self.setup.put_back {
            intents.push(Intent::PutBack);
        }
        if world.faults.errors > 0 {
            intents.push(Intent::Release);
            if self.setup.remember {
                intents.push(Intent::Remember);
            }
        }
        let until = now + self.setup.renewal;
        if self.setup.renewal > 0 && now <= call.held.lease() && call.held.lease() < until {
            intents.push(Intent::Renew(until));
        }
        intents
    }

    /// Whether and how a write that is about to be sent can go unanswered at once.
    fn losses(&self, world: &World, intent: Intent) -> Vec<Option<Resolve>> {
        let mut losses = vec![None];
        if self.setup.network == Network::Prompt && world.faults.timeouts > 0 {
            losses.extend(self.resolutions(intent).iter().copied().map(Some));
        }
        losses
    }

    /// What a worker can do about a write that got no answer.
    fn resolutions(&self, intent: Intent) -> &'static [Resolve] {
        if self.setup.regret && intent == Intent::Complete {
            &[Resolve::Retry, Resolve::GiveUp, Resolve::Regret]
        } else {
            &[Resolve::Retry, Resolve::GiveUp]
        }
    }

    /// The instants that a clock may show when a time is only written down.
    fn stamps(&self, time: u8) -> RangeInclusive<u8> {
        if self.setup.skewed_stamps { readings(time) } else { time..=time }
    }
}

/// Each instant that a clock may show at this true time.
fn readings(time: u8) -> RangeInclusive<u8> {
    time..=time + SKEW
}
