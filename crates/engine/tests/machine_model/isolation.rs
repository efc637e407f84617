//! Worlds of two invocations in one process, one of which has to be isolated; and what isolation is.

use std::time::Duration;

use lambda_idempotency_core::{policy::OnConflict, record::IdempotencyRecord, store::Write};

use crate::{
    invocation::suspected,
    run::hold,
    setup::Setup,
    store::{claim, receive_before},
    world::{Faults, Flaw, Invocation, Own, Request, World},
    worlds::NONE,
};

/// A record of an invocation: its place there, the idempotency record of its claim, and the receive of the
/// attempt before. That is not known of a claim that cannot be granted any more.
type Stake<'w> = (usize, &'w IdempotencyRecord, Option<u32>);

/// What a write claims.
pub(crate) fn stake<'w>(
    setup: &Setup,
    world: &World,
    own: &Own,
    write: &'w Write,
) -> Option<Stake<'w>> {
    claim(write)?;
    let key = setup.key(&write.key);
    let at = own.records.iter().position(|record| setup.messages[*record].key == key)?;
    Some((at, write.record.as_ref()?, receive_before(setup, world, write)))
}

/// Whether nothing of other invocations of the process may be claimed or run beside it.
fn is_isolated(world: &World, own: &Own, (at, record, before): Stake<'_>) -> bool {
    let suspicion = before.and_then(|before| suspected(world, own, at, record, before));
    suspicion.is_some_and(|suspicion| suspicion >= 2)
}

/// What an invocation has claimed, or may have.
fn at_stake<'w>(setup: &Setup, world: &World, own: &'w Own) -> Vec<Stake<'w>> {
    let running = own.running.iter().filter_map(|one| {
        let key = setup.messages[own.records[one.at]].key;
        Some((one.at, &one.held.as_ref()?.record, Some(world.before[key])))
    });
    let claims = own.calls.iter().flat_map(|call| match &call.request {
        Request::Write(writes) => writes.as_slice(),
        Request::Read(_) | Request::Send(_) => &[],
    });
    running.chain(claims.filter_map(|write| stake(setup, world, own, write))).collect()
}

/// This invocation claims or starts a record: no other one of the process is isolated meanwhile, and
/// none has anything at stake if the record is isolated.
pub(crate) fn check(setup: &Setup, world: &mut World, own: &Own, stake: Stake<'_>) {
    // Where a machine has to be asked first, nothing of it goes on before that.
    let is_due = |one: &&Invocation| one.own.wakes.is_some_and(|wakes| wakes <= world.now);
    let of_process = world.invocations.iter().filter(|one| one.own.process == own.process);
    let isolated = is_isolated(world, own, stake);
    let is_beside = of_process.filter(|one| !is_due(one)).any(|one| {
        let mut theirs = at_stake(setup, world, &one.own).into_iter();
        theirs.any(|other| isolated || is_isolated(world, &one.own, other))
    });
    if is_beside {
        world.flaws.add(Flaw::NotIsolated);
    }
}

/// This invocation waits: if nothing of it is claimed, runs or is to be settled, it has no place.
pub(crate) fn check_waiting(world: &mut World, own: &Own) {
    let is_idle = own.calls.is_empty() && own.running.is_empty();
    let places = &world.processes[own.process].places;
    let has_place = places.iter().any(|asked| asked.number == own.number && asked.is_taken);
    // What the store has failed to write is written again after a pause.
    if is_idle && has_place && !own.was_failed {
        world.flaws.add(Flaw::IdlePlace);
    }
}

/// The first key's handler kills its process, which has another invocation.
pub(crate) fn poison() -> Setup {
    Setup::new("a record that kills two invocations", &[0, 1]).with(|world| {
        (world.at_once, world.batch) = (2, 1);
        world.poison = true;
        world.takes = Duration::from_secs(1);
        (world.receives, world.harm) = (1, 2);
        world.faults.deaths = 3;
        world.expect = &["isolated place", "wait for isolation", "wait for a shared place"];
    })
}

#[test]
fn a_record_that_kills_two_invocations() {
    hold(poison());
}

/// Slow records, each in an invocation of one process, which dies twice.
pub(crate) fn slow() -> Setup {
    Setup::new("isolation beside slow records", &[0, 1]).with(|world| {
        (world.at_once, world.batch) = (2, 1);
        world.takes = Duration::from_secs(3);
        world.receives = 2;
        world.faults.deaths = 2;
        world.expect = &["isolated place", "wait for isolation", "wait for a shared place"];
    })
}

#[test]
fn isolation_beside_slow_records() {
    hold(slow());
}

/// The same without a deadline, with a handler that hangs.
pub(crate) fn endless() -> Setup {
    Setup::new("isolation without a deadline", &[0, 1])
        .with(|world| {
            (world.at_once, world.batch, world.timeout) = (2, 1, None);
            world.takes = Duration::from_secs(1);
            (world.faults.deaths, world.faults.hangs) = (2, 1);
            world.expect = &["isolated place", "wait for isolation", "stopped handler"];
        })
        .policy(|policy| policy.fallback_lease = Duration::from_secs(3))
}

#[test]
fn isolation_without_a_deadline() {
    hold(endless());
}

/// One that wants isolation has led a key which the other one follows for as long as it takes.
pub(crate) fn followed() -> Setup {
    Setup::new("isolation beside a follower", &[0, 1, 1])
        .with(|world| {
            (world.at_once, world.batch) = (2, 2);
            world.takes = Duration::from_secs(1);
            world.receives = 2;
            world.faults = Faults { deaths: 2, ..NONE };
            world.expect = &["isolated place", "follower"];
        })
        .policy(|policy| policy.on_conflict = OnConflict::Wait { up_to: Duration::from_secs(9) })
}

#[test]
fn isolation_beside_a_follower() {
    hold(followed());
}
