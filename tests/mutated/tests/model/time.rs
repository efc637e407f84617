//! The next instant at which something is due.

use std::time::Duration;

use crate::{
    core::clock::Timestamp,
    setup::{SKEW, Setup},
    world::{Place, Step, World},
};

/// The next instant at which something is due; `None` if time must not advance, or need not.
pub(crate) fn next(setup: &Setup, world: &World) -> Option<Timestamp> {
    let mut due: Vec<Timestamp> = Vec::new();
    for invocation in &world.invocations {
        let own = &invocation.own;
        if !own.calls.is_empty() && world.faults.delays == 0 {
            return None;
        }
        due.extend(own.calls.iter().map(|call| call.deadline));
        // A handler that waits for the store does so beyond its time.
        let running = own.running.iter().filter(|running| running.step != Step::Ended);
        due.extend(running.filter_map(|running| running.due));
        due.extend(own.wakes);
    }
    // When the server may remove a record, or Powertools take it over.
    if setup.sweeps || setup.powertools.is_some() {
        let ends = world.store.iter().flatten();
        let ends = ends.flat_map(|record| [Some(record.expires_at), record.lease_until]).flatten();
        let ends = ends.chain(world.stranger.map(|stranger| stranger.lease));
        let is_ahead = setup.powertools.is_none_or(|powertools| powertools.is_ahead);
        let after = ends.clone().map(|end| if is_ahead { end.minus(SKEW) } else { end });
        let instants = after
            .map(|end| end.plus(Duration::from_millis(1)))
            .chain(ends.filter(|_| setup.sweeps));
        due.extend(instants.filter(|instant| *instant > world.now));
    }
    // A visible message may wait; everything else that is due now has to happen first.
    due.extend(world.source.iter().filter_map(|delivery| match delivery.place {
        Place::Source(visible) if visible > world.now => Some(visible),
        _ => None,
    }));
    let next = due.into_iter().min().filter(|next| *next > world.now)?;
    // A handler that hangs is a fault.
    (world.faults.hangs > 0 || !lets_a_stranger_hang(world, next)).then_some(next)
}

/// Whether the lease of Powertools ends before this instant, while its handler runs.
pub(crate) fn lets_a_stranger_hang(world: &World, next: Timestamp) -> bool {
    world.stranger.is_some_and(|stranger| world.now <= stranger.lease && stranger.lease < next)
}

/// Whether any call is in flight.
pub(crate) fn is_delayed(world: &World) -> bool {
    world.invocations.iter().any(|invocation| !invocation.own.calls.is_empty())
}
