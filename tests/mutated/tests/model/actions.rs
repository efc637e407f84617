//! Every step that the world can take next.

use std::ops::RangeInclusive;

use crate::{
    explorer::{Action, Explorer},
    packed::Payload,
    powertools::Fate,
    request::Intent,
    sending::Resolve,
    setup::{Network, SKEW},
    state::{Call, Job, World},
    step::Step,
};

impl Explorer {
    /// The steps of a worker with a key.
    pub(crate) fn worker_actions(&self, world: &World, worker: usize, actions: &mut Vec<Action>) {
        let Some(call) = world.key.calls[worker] else {
            return self.takes(world, worker, actions);
        };
        match call.job {
            Job::Waiting => {
                for now in readings(world.time) {
                    actions.push(Action::Look { worker, now });
                }
                actions.push(Action::StopWaiting { worker });
            }
            Job::Granted => {
                for now in readings(world.time) {
                    actions.push(Action::Start { worker, now });
                }
                self.settles(world, worker, &[Intent::Undo], actions);
            }
            Job::Running | Job::Renewing => {
                for now in self.stamps(world.time) {
                    let intents = self.intents(world, &call, now);
                    self.settles_at(world, worker, now, &intents, actions);
                    if self.setup.drops && call.job == Job::Running {
                        let lost = self.collisions(world, Intent::LeaveStanding);
                        actions.extend(lost.into_iter().map(|lost| Action::Drop {
                            worker,
                            now,
                            lost,
                        }));
                    }
                }
            }
            Job::Claiming | Job::Settling => {}
        }
        let Some(request) = call.request else { return };
        for now in readings(world.time) {
            actions.push(if call.answer.is_some() {
                Action::Answer { worker, now }
            } else {
                Action::Land { worker, now }
            });
        }
        if world.faults.timeouts > 0 {
            for now in self.stamps(world.time) {
                for &resolve in self.resolutions(request.intent) {
                    actions.push(Action::Unanswered { worker, resolve, now });
                }
            }
        }
    }

    /// The deliveries that an idle worker can take from the source.
    fn takes(&self, world: &World, worker: usize, actions: &mut Vec<Action>) {
        let queued = world.key.source.queued;
        for payload in (0..2).filter(|payload: &Payload| queued[usize::from(*payload)] > 0) {
            for now in readings(world.time) {
                for lost in self.collisions(world, Intent::Claim) {
                    actions.push(Action::Take { worker, payload, now, lost });
                }
            }
        }
    }

    fn settles(&self, world: &World, worker: usize, intents: &[Intent], actions: &mut Vec<Action>) {
        for now in self.stamps(world.time) {
            self.settles_at(world, worker, now, intents, actions);
        }
    }

    fn settles_at(
        &self,
        world: &World,
        worker: usize,
        now: u8,
        intents: &[Intent],
        actions: &mut Vec<Action>,
    ) {
        for &intent in intents {
            for lost in self.collisions(world, intent) {
                actions.push(Action::Settle { worker, intent, now, lost });
            }
        }
    }

    /// Steps with a key that no worker takes: sweeps, late writes, functions that use Powertools.
    pub(crate) fn key_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let of_key = &world.key;
        if of_key.store.is_some_and(|record| world.time + SKEW > record.expires()) {
            actions.push(Action::Sweep);
        }
        if of_key.strays.is_empty() && of_key.strangers.is_empty() {
            return;
        }
        let mut probe = of_key.clone();
        let step = Step::new(self.protocol, &self.setup, world.time, &mut probe);
        // A late write that changes nothing need not be delivered.
        for (index, stray) in of_key.strays.iter().enumerate() {
            if step.would_change(stray) {
                actions.push(Action::Stray { index });
            }
        }
        let ahead = if self.setup.powertools.ahead { SKEW } else { 0 };
        for (function, stranger) in of_key.strangers.iter().enumerate() {
            if stranger.is_some() {
                let fates = [(Fate::Completes, true), (Fate::Fails, world.faults.errors > 0)];
                let fates = fates.into_iter().chain([(Fate::Dies, world.faults.crashes > 0)]);
                actions.extend(
                    fates
                        .filter(|(_, can)| *can)
                        .map(|(fate, _)| Action::StrangerEnds { function, fate }),
                );
            } else if of_key.source.queued[0] > 0 {
                let now = world.time..=world.time + ahead;
                actions.extend(
                    now.filter(|now| step.stranger_can_take(*now))
                        .map(|now| Action::StrangerTakes { function, now }),
                );
            }
        }
    }

    /// The settlements that may follow while a call holds its key.
    fn intents(&self, world: &World, call: &Call, now: u8) -> Vec<Intent> {
        if call.job == Job::Renewing && !self.setup.stops {
            return Vec::new();
        }
        let mut intents = vec![Intent::Complete];
        if world.faults.errors > 0 {
            intents.push(Intent::Release);
            if self.setup.fails_permanently {
                intents.push(Intent::FailPermanently);
            }
        }
        let until = now + self.setup.renewal;
        let lasts = now <= call.held.lease() && call.held.lease() < until;
        if self.setup.renewal > 0 && lasts && call.job == Job::Running {
            intents.push(Intent::Renew(until));
        }
        intents
    }

    /// Whether a write that is about to be sent can get no answer, and what its worker then does.
    fn collisions(&self, world: &World, intent: Intent) -> Vec<Option<Resolve>> {
        let mut collisions = vec![None];
        if self.setup.network == Network::Prompt && world.faults.timeouts > 0 {
            collisions.extend(self.resolutions(intent).iter().copied().map(Some));
        }
        collisions
    }

    /// What a worker can do after a write that got no answer.
    fn resolutions(&self, intent: Intent) -> &'static [Resolve] {
        if self.setup.regret && intent == Intent::Complete {
            &[Resolve::Retry, Resolve::GiveUp, Resolve::Regret]
        } else {
            &[Resolve::Retry, Resolve::GiveUp]
        }
    }

    /// The instants that a clock may show for a time that is stored and decides nothing.
    fn stamps(&self, time: u8) -> RangeInclusive<u8> {
        if self.setup.skewed_stamps { readings(time) } else { time..=time }
    }
}

/// Each instant that a clock may show at this true time.
fn readings(time: u8) -> RangeInclusive<u8> {
    time..=time + SKEW
}
