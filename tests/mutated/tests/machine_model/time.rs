//! The next instant at which something is due.

use lambda_idempotency_core::clock::Timestamp;

use crate::world::{Place, Step, World};

/// The next instant at which something is due; `None` if time must not advance, or need not.
pub(crate) fn next(world: &World) -> Option<Timestamp> {
    if !world.finished.is_empty() {
        return None;
    }
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
    // A visible message may wait; everything else that is due now has to happen first.
    due.extend(world.source.iter().filter_map(|delivery| match delivery.place {
        Place::Source(visible) if visible > world.now => Some(visible),
        _ => None,
    }));
    let next = due.into_iter().min()?;
    (next > world.now).then_some(next)
}

/// Whether any call is in flight.
pub(crate) fn is_delayed(world: &World) -> bool {
    world.invocations.iter().any(|invocation| !invocation.own.calls.is_empty())
}
