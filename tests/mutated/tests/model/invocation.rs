//! An invocation: carries out its machine's effects, as the driver does, and decides nothing.

use std::time::Duration;

use crate::core::{
    admission::Held,
    clock::Timestamp,
    outcome::{NotStarted, Outcome},
    policy::OnTimeout,
    record::{Fingerprint, IdempotencyRecord, Status},
    store::Write,
};

use crate::{
    Misjudged,
    deaths::end,
    host::Surroundings,
    machine::{Action, HandlerEnd, Handling, Input, Machine, NewRecord, RecordOutcome, Setting},
    misjudged, outboxes,
    properties::*,
    setup::Setup,
    store::claim,
    world::{Call, Fate, Invocation, Own, Place, Request, Running, Step, World},
};

/// The longest pause between two looks at a busy key, or two tries of a settlement.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The text of each payload.
const PAYLOADS: [&str; 2] = ["p", "q"];

/// Starts an invocation of `process` with these messages.
pub(crate) fn begin(setup: &Setup, world: &mut World, process: usize, records: Vec<usize>) {
    world.begun += 1;
    let now = world.clock(process);
    let deadline = setup.timeout.map(|timeout| world.now.plus(timeout));
    for record in &records {
        let delivery = &mut world.source[*record];
        delivery.receives += u8::from(!setup.whole);
        delivery.since_fault += 1;
        delivery.place = Place::InFlight(world.now.plus(setup.visibility));
        setup.witness.received(delivery.since_fault);
        if delivery.since_fault > setup.receives {
            world.blame(RECOVERY);
        }
    }
    let setting = Setting {
        operation: "op",
        application: setup.applications.then(|| PAYLOADS[process].into()),
        policy: setup.policy,
        deadline,
        work_end: None,
        time_after: Duration::ZERO,
        is_redelivered: true,
    };
    let asks: Vec<_> = records.iter().map(|record| ask(setup, world, *record)).collect();
    let mut own = Own {
        number: world.begun,
        process,
        ends: deadline,
        wakes: None,
        tokens: 0,
        outcomes: vec![None; records.len()],
        records,
        calls: Vec::new(),
        running: Vec::new(),
        lost_completion: false,
        was_failed: false,
        has_stepped: false,
        has_no_time: false,
    };
    let host = &mut Surroundings { setup, world, own: &mut own };
    let machine = Machine::new(setting, asks.into_iter(), now, host);
    world.invocations.push(Invocation { machine, own });
    let place = world.invocations.len() - 1;
    advance(setup, world, place, None);
}

fn ask(setup: &Setup, world: &World, record: usize) -> NewRecord<'static> {
    let message = setup.messages[record];
    let payload = PAYLOADS[message.payload];
    NewRecord {
        key: Some(setup.keys[message.key].clone()),
        fingerprint: setup.fingerprints.then(|| Fingerprint::new(payload)),
        payload: Some(payload),
        group: setup.ordered.then(|| "g".into()),
        receives: world.source[record].receives.into(),
        handling: Handling::Keyed,
        lets_pass: false,
        kept: None,
    }
}

/// Gives the machine an input, if there is one, and carries out its effects until it waits.
pub(crate) fn advance(setup: &Setup, world: &mut World, place: usize, input: Option<Input>) {
    let mut invocation = world.invocations.remove(place);
    let Invocation { machine, own } = &mut invocation;
    let now = world.clock(own.process);
    let is_due = own.ends.is_some_and(|ends| now >= setup.reply(ends));
    own.has_no_time |= std::mem::take(&mut own.has_stepped) && is_due;
    if let Some(input) = input {
        machine.handle(input, now, &mut Surroundings { setup, world, own });
    }
    loop {
        while let Some(action) = machine.next(now, &mut Surroundings { setup, world, own }) {
            act(machine, setup, world, own, action);
        }
        if own.ends.is_some_and(|ends| world.now >= ends) {
            world.blame(IN_TIME);
        }
        if machine.is_done() {
            return end(setup, world, &invocation.own);
        }
        if !machine.rest(now, &mut Surroundings { setup, world, own }) {
            break;
        }
    }
    match misjudged() {
        Some(Misjudged::OwnWork) => world.blame(OWN_WORK_KNOWN),
        Some(Misjudged::Overtaken) => world.blame(NOT_MISLED),
        Some(Misjudged::Promise) => world.blame(WAITING_ENDS),
        None => {}
    }
    let wake = machine.wake(now);
    let is_awaited = !own.calls.is_empty() || own.running.iter().any(|one| one.due.is_some());
    if wake.is_some_and(|wake| wake <= now) || (wake.is_none() && !is_awaited) {
        world.blame(WAKES);
    }
    if awaits_a_key(own) && wake.is_none_or(|wake| wake > now.plus(LONGEST_PAUSE)) {
        world.blame(WAKES);
    }
    own.wakes = wake.map(|wake| world.truly(own.process, wake));
    world.invocations.insert(place, invocation);
}

/// Whether nothing but time is missing to records without an outcome: nothing runs, and no call is in flight.
fn awaits_a_key(own: &Own) -> bool {
    own.calls.is_empty() && own.running.is_empty() && own.outcomes.contains(&None)
}

fn act(
    machine: &mut Machine<'static>,
    setup: &Setup,
    world: &mut World,
    own: &mut Own,
    action: Action,
) {
    match action {
        Action::Read { call, keys, deadline } => {
            if own.running.iter().any(|one| suspicion(one).is_some()) {
                world.blame(ALONE);
            }
            let is_asked = |key| own.calls.iter().any(|call| call.request.asks_for(key));
            let is_twice = |(at, key)| keys[..at].contains(key) || is_asked(key);
            if keys.iter().enumerate().any(is_twice) {
                world.blame(CLAIMED_ONCE);
            }
            setup.witness.saw("look");
            own.calls.push(Call::new(world, own.process, call, Request::Read(keys), deadline));
        }
        Action::Write { call, writes, deadline } => {
            let is_twice = |(at, write): (usize, &Write)| {
                writes[..at].iter().any(|other| other.key == write.key)
            };
            if writes.iter().enumerate().any(is_twice) {
                world.blame(CLAIMED_ONCE);
            }
            for write in &writes {
                check_write(setup, world, own, write, world.truly(own.process, deadline));
            }
            own.calls.push(Call::new(world, own.process, call, Request::Write(writes), deadline));
        }
        Action::Send { call, messages, deadline } => {
            own.calls.push(Call::new(world, own.process, call, Request::Send(messages), deadline));
        }
        // The model already polls calls before handlers and after them.
        Action::GiveWay => {}
        Action::Start { at, held, stop } => {
            let now = world.clock(own.process);
            let lease = held.as_ref().and_then(|held| held.record.lease_until);
            let missed = if lease.is_some_and(|lease| now > lease) {
                Some(NotStarted::Lease)
            } else {
                (now >= stop).then_some(NotStarted::Deadline)
            };
            if let Some(why) = missed {
                let ended = HandlerEnd::NotBegun(why);
                let input = Input::Ended { at, ended, since: None, polled: Duration::ZERO };
                return machine.handle(input, now, &mut Surroundings { setup, world, own });
            }
            check_start(setup, world, own, at, held.as_deref());
            let due = Some(world.now.plus(setup.takes));
            let is_stored = held.as_ref().is_some_and(|held| held.record.steps.is_some());
            let step = if is_stored { Step::Stored } else { Step::Before };
            own.running.push(Running { at, held, lease, since: now, due, step });
        }
        Action::Report(ended) => report(setup, world, own, &ended),
    }
}

fn check_write(setup: &Setup, world: &mut World, own: &Own, write: &Write, deadline: Timestamp) {
    if let Some(owner) = claim(write) {
        let is_asked = own.calls.iter().any(|call| match &call.request {
            Request::Write(writes) => {
                let mut claims = writes.iter().filter(|other| other.key == write.key);
                claims.any(|other| claim(other).is_some_and(|other| other != owner))
            }
            Request::Read(keys) => keys.contains(&write.key),
            Request::Send(_) => false,
        });
        let runs = |one: &Running| {
            let message = setup.messages[own.records[one.at]];
            setup.keys[message.key] == write.key && one.held.is_some()
        };
        if is_asked || own.running.iter().any(runs) {
            world.blame(CLAIMED_ONCE);
        }
        // A member of the same group, whose first claim got no answer, may be claimed again.
        let claimed = write.record.as_ref().and_then(suspected);
        let mut beside = own.running.iter().filter_map(suspicion);
        if beside.any(|suspicion| claimed != Some(suspicion)) {
            world.blame(ALONE);
        }
        return;
    }
    // Any other write that leaves a record in progress with an owner is a renewal.
    let renewal = write
        .record
        .as_ref()
        .filter(|record| record.status == Status::InProgress && record.owner.is_some());
    let stored = world.store[setup.key(&write.key)].as_ref();
    if let Some(renewed) = renewal {
        setup.witness.saw("renewal");
        let lease = stored.filter(|record| record.owner == renewed.owner);
        let lease = lease.and_then(|record| record.lease_until);
        if lease.is_some_and(|lease| deadline > world.truly(own.process, lease)) {
            world.blame(RENEWED_IN_TIME);
        }
    }
}

/// The losses in a row of a record with this claim, if its last attempts were lost.
fn suspected(claim: &IdempotencyRecord) -> Option<u32> {
    (claim.consecutive_losses > 0).then_some(claim.consecutive_losses)
}

fn suspicion(running: &Running) -> Option<u32> {
    suspected(&running.held.as_ref()?.record)
}

/// Whether a record may start beside those that run: all of them were lost once, or none was lost.
fn check_group(world: &mut World, own: &Own, held: &Held) {
    let mine = suspected(&held.record);
    let is_alike = |one: &Running| suspicion(one) == mine && mine.is_none_or(|losses| losses == 1);
    if !own.running.iter().all(is_alike) {
        world.blame(ALONE);
    }
}

fn check_start(setup: &Setup, world: &mut World, own: &Own, at: usize, held: Option<&Held>) {
    let record = own.records[at];
    let message = setup.messages[record];
    setup.witness.saw(if held.is_some() { "handler" } else { "handler without a claim" });
    if let Some(held) = held {
        let owns = |record: &IdempotencyRecord| {
            record.status == Status::InProgress && record.owner == Some(held.claim.owner)
        };
        if setup.policy.mode.claims() && !world.store[message.key].as_ref().is_some_and(owns) {
            world.blame(STARTS_AS_OWNER);
        }
        if setup.policy.mode.claims() && setup.policy.mode.keeps_completions() {
            if held.record.fence <= world.fences[message.key] {
                world.blame(FENCES_OUTLIVE);
            }
            world.fences[message.key] = held.record.fence;
        }
        if held.record.steps.is_some() {
            setup.witness.saw("step answered");
        } else if world.steps_relied_on[message.key] {
            world.blame(STEPS_KEPT);
        }
        if world.now <= world.lingering[message.key] {
            world.blame(STOPPED_COUNTS);
        }
        if held.consecutive_losses() > 0 {
            setup.witness.saw(match own.running.is_empty() {
                true => "quarantined handler",
                false => "quarantine group",
            });
        }
        // In worlds with poison, the count of harmed handlers checks this instead.
        if !setup.poison {
            check_group(world, own, held);
        }
    }
    let earlier = setup.messages[..record].iter().zip(&world.source);
    let in_order = earlier.into_iter().all(|(message, delivery)| {
        world.effects[message.key].contains(message.payload) || delivery.place == Place::Permanent
    });
    if setup.ordered && !in_order {
        world.blame(IN_ORDER);
    }
}

fn report(setup: &Setup, world: &mut World, own: &mut Own, ended: &RecordOutcome) {
    let (outcome, message) = (&ended.outcome.0, setup.messages[own.records[ended.at]]);
    setup.witness.saw(outcome.label());
    if outcome.is_acknowledged() {
        outboxes::check_acknowledged(setup, world, message.key);
    }
    let stored = world.store[message.key].as_ref();
    let is = |status| stored.is_some_and(|record| record.status == status);
    let owns = |held: Option<&Held>| {
        let owner = held.map(|held| held.claim.owner);
        is(Status::InProgress) && owner.is_some() && stored.and_then(|one| one.owner) == owner
    };
    if outcome.is_acknowledged() {
        own.lost_completion |= matches!(outcome, Outcome::CompletionLost { .. });
        let recorded = match outcome {
            Outcome::CompletionLost { .. } | Outcome::Unprotected { .. } => true,
            _ if !setup.policy.mode.keeps_completions() => world.ran[own.records[ended.at]],
            Outcome::Coalesced { .. } if own.lost_completion => true,
            _ => is(Status::Completed) || world.gone[message.key],
        };
        let is_own = |found: Option<&str>| found.is_none_or(|it| it == PAYLOADS[message.payload]);
        let completion = stored.filter(|one| one.status == Status::Completed);
        let answers = completion.is_none_or(|one| {
            is_own(one.fingerprint.as_ref().map(Fingerprint::as_str))
                && is_own(one.application.as_deref())
        });
        let effects = world.effects[message.key];
        if !recorded || !effects.any() {
            world.broken.push(ACKNOWLEDGED_LAST);
        } else if (setup.fingerprints || setup.applications)
            && (!effects.contains(message.payload) || !answers)
        {
            world.broken.push(OWN_ANSWER);
        }
    }
    if let (Some(held), Some(left), Outcome::Failed { permanent: false, .. }) =
        (&ended.held, stored, outcome)
        && left.last_owner == Some(held.claim.owner)
        && left.failed_attempts <= held.record.failed_attempts
    {
        world.broken.push(COUNTS_KEPT);
    }
    let is_permanent = match outcome {
        Outcome::Failed { permanent, .. } | Outcome::TimedOut { permanent } => *permanent,
        Outcome::PermanentlyFailed { .. } => true,
        _ => false,
    };
    let stops_permanently = setup.policy.on_timeout == OnTimeout::FailPermanently;
    let unrecorded = match outcome {
        // The lease stands, but the worker has given the key up.
        Outcome::TimedOut { permanent: false } => {
            (stops_permanently || owns(ended.held.as_deref()))
                && !own.was_failed
                && !own.has_no_time
        }
        Outcome::CompletionLost { .. } => !own.was_failed && !own.has_no_time,
        _ => is_permanent && !is(Status::PermanentlyFailed),
    };
    if unrecorded {
        world.broken.push(RECORDED);
    }
    let locked = owns(ended.held.as_deref());
    if matches!(outcome, Outcome::Returned(_)) && locked && !own.was_failed {
        world.broken.push(UNDONE);
    }
    own.outcomes[ended.at] = Some(if outcome.is_acknowledged() {
        Fate::Acknowledged
    } else if is_permanent || matches!(outcome, Outcome::Mismatch) {
        Fate::Permanent
    } else {
        Fate::Returned
    });
}
