//! The world as a [`Model`]: its first state, and the effect of each step.

use std::time::Duration;

use crate::core::failure::Failure;
use lambda_idempotency_engine::batch::Returned;
use stateright::{Model, Property};

use crate::{
    answers::How,
    invocation::{advance, begin},
    leave_out,
    machine::{Collected, HandlerEnd, Input},
    outboxes,
    powertools::Fate,
    properties,
    setup::Setup,
    store::{Effect, can_sweep, land, sweep, would_change},
    time,
    world::{Place, Request, Step, World},
};

/// The driver's longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Explores the engine in a world of this size.
#[derive(Debug)]
pub(crate) struct Explorer {
    pub(crate) setup: Setup,
}

/// A step. Invocations and calls are named by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Time advances to the next instant at which something is due.
    Tick,
    /// A machine is woken at the instant that it asked for.
    Wake { invocation: usize },
    /// A process gets messages.
    Deliver { process: usize },
    /// The store applies a call and answers.
    Answer { invocation: usize, call: usize },
    /// A call gets no answer, or one member of it does not while the others do.
    Lose { invocation: usize, call: usize, member: Option<usize> },
    /// The store throttles a call.
    Refuse { invocation: usize, call: usize },
    /// The store applies a call, and its answer is on its way.
    Apply { invocation: usize, call: usize },
    /// A handler ends.
    End { invocation: usize, running: usize, is_ok: bool },
    /// A handler fails permanently.
    Fail { invocation: usize, running: usize },
    /// A handler ends that has collected an effect which the store refuses.
    EndRefused { invocation: usize, running: usize },
    /// The step of a handler ends.
    EndStep { invocation: usize, running: usize },
    /// A handler will not end by itself.
    Hang { invocation: usize, running: usize },
    /// A process dies.
    Kill { process: usize },
    /// A write without an answer reaches the store.
    Land { stray: usize },
    /// A process's clock steps, ahead or back.
    Step { process: usize },
    /// The server removes an expired record.
    Sweep { key: usize },
    /// The function that uses Powertools takes a message and claims its key.
    StrangerTakes { message: usize, is_ahead: bool },
    /// Its handler ends.
    StrangerEnds { fate: Fate },
}

impl Explorer {
    fn invocation_actions(&self, world: &World, place: usize, actions: &mut Vec<Action>) {
        let invocation = &world.invocations[place];
        let (own, faults) = (&invocation.own, world.faults);
        // The driver asks the machine before it polls anything.
        if own.wakes.is_some_and(|wake| wake <= world.now) {
            return actions.push(Action::Wake { invocation: place });
        }
        for (call, sent) in own.calls.iter().enumerate() {
            actions.push(Action::Answer { invocation: place, call });
            let members = match &sent.request {
                Request::Read(keys) => keys.len(),
                Request::Write(writes) => writes.len(),
                Request::Send(messages) => messages.len(),
            };
            if sent.is_late || sent.answer.is_some() {
                continue;
            }
            if self.setup.late_answers && faults.delays > 0 {
                actions.push(Action::Apply { invocation: place, call });
            }
            if faults.losses > 0 {
                actions.push(Action::Lose { invocation: place, call, member: None });
                let each = (0..members).filter(|_| members > 1);
                actions.extend(each.map(|member| Action::Lose {
                    invocation: place,
                    call,
                    member: Some(member),
                }));
            }
            if faults.refusals > 0 {
                actions.push(Action::Refuse { invocation: place, call });
            }
        }
        for (running, handler) in own.running.iter().enumerate() {
            if handler.due.is_none() || (self.setup.in_turn && running > 0) {
                continue;
            }
            match handler.step {
                Step::Before if self.setup.steps && handler.held.is_some() => {
                    actions.push(Action::EndStep { invocation: place, running });
                }
                // It waits for the store.
                Step::Ended => {}
                Step::Before | Step::Stored => {
                    actions.push(Action::End { invocation: place, running, is_ok: true });
                }
            }
            if faults.errors > 0 {
                actions.push(Action::End { invocation: place, running, is_ok: false });
                if self.setup.fails_permanently {
                    actions.push(Action::Fail { invocation: place, running });
                }
                if self.setup.policy.mode.commits_effects() {
                    actions.push(Action::EndRefused { invocation: place, running });
                }
            }
            if faults.hangs > 0 {
                actions.push(Action::Hang { invocation: place, running });
            }
        }
    }

    /// The messages that the next invocation of a process gets.
    pub(crate) fn deliverable(&self, world: &World, process: usize) -> Vec<usize> {
        let is_final = |place| matches!(place, Place::Acknowledged | Place::Permanent);
        let open = world.source.iter().enumerate().filter(|(_, one)| !is_final(one.place));
        let visible = |place| matches!(place, Place::Source(visible) if visible <= world.now);
        if self.setup.ordered || self.setup.whole {
            let all: Vec<_> = open.collect();
            if all.iter().any(|(_, one)| !visible(one.place)) {
                return Vec::new();
            }
            return all.into_iter().map(|(at, _)| at).take(self.setup.batch).collect();
        }
        let is_his =
            |at: usize| !self.setup.applications || self.setup.messages[at].payload == process;
        let visible = open.filter(|(at, one)| visible(one.place) && is_his(*at));
        visible.map(|(at, _)| at).take(self.setup.batch).collect()
    }

    /// A handler has returned, and has collected this effect, and messages if handlers publish some.
    fn collected(&self, effect: Option<Effect>) -> HandlerEnd {
        let effects = effect.map(Effect::collected);
        let outbox = self.setup.publishes.then(|| outboxes::PUBLISHED.into());
        let collected = Collected { effects, outbox, retention: None };
        HandlerEnd::Through(Ok((Returned::Nothing, collected)))
    }
}

impl Model for Explorer {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.setup)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if !world.broken.is_empty() || world.is_over() {
            return;
        }
        let setup = &self.setup;
        leave_out(setup.left_out);
        if time::next(setup, world).is_some() {
            actions.push(Action::Tick);
        }
        for process in 0..setup.processes {
            let of_process = |one: &&crate::world::Invocation| one.own.process == process;
            let at_once = world.invocations.iter().filter(of_process).count();
            if at_once < setup.at_once && !self.deliverable(world, process).is_empty() {
                actions.push(Action::Deliver { process });
            }
            let mut handlers = world.invocations.iter().filter(of_process).flat_map(|one| {
                one.own
                    .running
                    .iter()
                    .map(|handler| setup.messages[one.own.records[handler.at]].key)
            });
            let dies = if setup.poison { handlers.any(|key| key == 0) } else { at_once > 0 };
            if dies && world.faults.deaths > 0 {
                actions.push(Action::Kill { process });
            }
            if world.faults.steps > 0 && !world.invocations.is_empty() {
                actions.push(Action::Step { process });
            }
        }
        self.stranger_actions(world, actions);
        let keys = (0..setup.keys.len()).filter(|key| setup.sweeps && can_sweep(world, *key));
        actions.extend(keys.map(|key| Action::Sweep { key }));
        for place in 0..world.invocations.len() {
            self.invocation_actions(world, place, actions);
        }
        for (stray, (write, lost)) in world.strays.iter().enumerate() {
            let in_time = *lost == world.now || world.faults.late > 0;
            if in_time && would_change(setup, world, write) {
                actions.push(Action::Land { stray });
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        leave_out(self.setup.left_out);
        let (setup, mut next) = (&self.setup, world.clone());
        let world = &mut next;
        match action {
            Action::Tick => {
                if time::is_delayed(world) {
                    world.faults.delays -= 1;
                    world.fault();
                }
                let next = time::next(setup, world).unwrap_or(world.now);
                if time::lets_a_stranger_hang(world, next) {
                    world.faults.hangs -= 1;
                    world.fault();
                }
                world.now = next;
                self.kill_stranger(world);
                if world.faults.late == 0 {
                    world.strays.clear();
                }
            }
            Action::Wake { invocation } => advance(setup, world, invocation, None),
            Action::Deliver { process } => {
                let records = self.deliverable(world, process);
                begin(setup, world, process, records);
            }
            Action::Answer { invocation, call } => {
                self.answer(world, invocation, call, How::Answered);
            }
            Action::Lose { invocation, call, member } => {
                world.faults.losses -= 1;
                world.fault();
                self.answer(world, invocation, call, How::Lost(member));
            }
            Action::Refuse { invocation, call } => {
                world.faults.refusals -= 1;
                world.fault();
                self.answer(world, invocation, call, How::Refused);
            }
            Action::End { invocation, running, is_ok } => {
                let own = &mut world.invocations[invocation].own;
                let handler = own.running.remove(running);
                let record = own.records[handler.at];
                let message = setup.messages[record];
                world.ran[record] |= is_ok && !setup.policy.mode.keeps_completions();
                let ended = if is_ok && setup.policy.mode.commits_effects() {
                    let effect = [Effect::Holds, Effect::HoldsForOther][message.payload];
                    self.collected(Some(effect))
                } else if is_ok && setup.publishes {
                    world.effects[message.key].add(message.payload);
                    self.collected(None)
                } else if is_ok {
                    world.effects[message.key].add(message.payload);
                    HandlerEnd::Through(Ok((Returned::Nothing, Collected::default())))
                } else {
                    world.faults.errors -= 1;
                    world.fault();
                    HandlerEnd::Through(Err(Failure::transient("a failure")))
                };
                let (at, since) = (handler.at, Some(handler.since));
                let input = Input::Ended { at, ended, since, polled: Duration::ZERO };
                advance(setup, world, invocation, Some(input));
            }
            Action::Apply { invocation, call } => self.apply(world, invocation, call),
            Action::Fail { invocation, running } => {
                let own = &mut world.invocations[invocation].own;
                let handler = own.running.remove(running);
                world.faults.errors -= 1;
                world.fault();
                let ended = HandlerEnd::Through(Err(Failure::permanent("a failure")));
                let (at, since) = (handler.at, Some(handler.since));
                let input = Input::Ended { at, ended, since, polled: Duration::ZERO };
                advance(setup, world, invocation, Some(input));
            }
            Action::EndStep { invocation, running } => {
                setup.witness.saw("step");
                let handler = &mut world.invocations[invocation].own.running[running];
                handler.step = Step::Ended;
                let input = Input::Steps { at: handler.at, steps: "{\"step\":1}".into() };
                advance(setup, world, invocation, Some(input));
            }
            Action::EndRefused { invocation, running } => {
                let handler = world.invocations[invocation].own.running.remove(running);
                world.faults.errors -= 1;
                world.fault();
                let ended = self.collected(Some(Effect::Refused));
                let (at, since) = (handler.at, Some(handler.since));
                let input = Input::Ended { at, ended, since, polled: Duration::ZERO };
                advance(setup, world, invocation, Some(input));
            }
            Action::Hang { invocation, running } => {
                world.faults.hangs -= 1;
                world.fault();
                world.invocations[invocation].own.running[running].due = None;
            }
            Action::Kill { process } => {
                world.faults.deaths -= 1;
                world.fault();
                self.kill(world, process);
            }
            Action::Land { stray } => {
                let (write, lost) = world.strays.remove(stray);
                if lost < world.now {
                    setup.witness.saw("late write");
                    world.faults.late -= 1;
                    world.fault();
                }
                land(setup, world, &write);
            }
            Action::Sweep { key } => sweep(setup, world, key),
            Action::StrangerTakes { message, is_ahead } => {
                self.stranger_takes(world, message, is_ahead);
            }
            Action::StrangerEnds { fate } => {
                let (failed, died) = (fate == Fate::Fails, fate == Fate::Dies);
                world.faults.errors -= u8::from(failed);
                world.faults.deaths -= u8::from(died);
                if failed || died {
                    world.fault();
                }
                self.stranger_ends(world, fate);
            }
            Action::Step { process } => {
                world.faults.steps -= 1;
                world.fault();
                let place = process;
                let process = &mut world.processes[place];
                process.is_ahead = !process.is_ahead;
                let is_ahead = process.is_ahead;
                // The driver never sleeps longer than this, so that it notices the step.
                let last = world.now.plus(LONGEST_SLEEP);
                let all = world.invocations.iter_mut().filter(|one| one.own.process == place);
                for invocation in all {
                    invocation.own.has_stepped |= is_ahead;
                    let wakes = &mut invocation.own.wakes;
                    *wakes = wakes.map(|wakes| wakes.min(last));
                }
            }
        }
        properties::check(self, world);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
