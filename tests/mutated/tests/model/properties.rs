//! The properties that must hold in every state. `rules.txt` says what each means.

use crate::core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};
use stateright::{Model as _, Property};

use crate::{
    explorer::Explorer,
    time,
    world::{Invocation, Running, Stranger, World},
};

/// Defines the names, and `all`: that no step has broken one.
macro_rules! properties {
    ($($name:ident: $text:expr,)*) => {
        $(pub(crate) const $name: &str = $text;)*

        /// The properties of every world.
        pub(crate) fn all() -> Vec<Property<Explorer>> {
            vec![$(Property::always($name, |_, world: &World| !world.broken.contains(&$name))),*]
        }
    };
}

properties! {
    ONE_HANDLER: "I1 one handler at a time",
    ONE_OWNER: "I1 one owner",
    BELIEF_IS_TRUE: "I1 a believed lease is real",
    STARTS_AS_OWNER: "I1 only the owner starts",
    FENCED: "I2 fenced",
    FINAL: "I3 completed is final",
    NOT_OVERWRITTEN: "settled records are not overwritten",
    ACKNOWLEDGED_LAST: "I4 acknowledged after completion",
    NOTHING_LOST: "I4 nothing is lost",
    RECORDED: "I4 ended attempts are recorded",
    IN_TIME: "I4 the response is in time",
    IN_ORDER: "I5 order is kept",
    ALONE: "I5 quarantine is kept",
    HARM: "I5 harm by a bad record is bounded",
    OWN_ANSWER: "I6 no answer from another payload",
    OWN_WORK_KNOWN: "I7 own work is recognised",
    NOT_MISLED: "I7 an owner is not told it was overtaken",
    EXPIRES_AFTER_LEASE: "I9 expires after the lease",
    SWEEP_SPARES_HOLDERS: "I9 a sweep keeps held records",
    RECOVERY: "I12 recovery is bounded",
    STEPS_KEPT: "steps are kept",
    COMMITTED_ONCE: "I16 effects are committed once",
    SENT_AFTER_COMPLETION: "I16 messages follow their completion",
    ACKNOWLEDGED_SENT: "I16 acknowledged after its messages",
    MARKED_SENT: "I16 marked after sending",
    CLAIMED_ONCE: "a record is claimed once",
    RENEWED_IN_TIME: "a renewal ends with its lease",
    COUNTS_KEPT: "attempt counts are kept",
    FAILURES_ARE_REAL: "only failures count as failed attempts",
    STOPPED_COUNTS: "no handler starts beside a stopped one",
    UNDONE: "an unstarted record locks no key",
    WAKES: "a waiting machine wakes",
    WAITING_ENDS: "waiting ends at the given instant",
    FENCES_RISE: "fences rise while the record lives",
    FENCES_OUTLIVE: "fences rise after a record is removed",
}

/// Notes the properties that this state breaks, and forgets those that its world is known to lose.
pub(crate) fn check(model: &Explorer, world: &mut World) {
    let setup = &model.setup;
    let claims = setup.policy.mode.claims();
    let keys = 0..setup.keys.len();
    // Without claims, of the handlers of a key one is committed.
    if claims && keys.clone().any(|key| running(model, world, key).count() > 1) {
        world.blame(ONE_HANDLER);
    }
    if claims && keys.clone().any(|key| owners(model, world, key) > 1) {
        world.blame(ONE_OWNER);
    }
    if claims && keys.clone().any(|key| !is_belief_true(model, world, key)) {
        world.blame(BELIEF_IS_TRUE);
    }
    if world.harmed.iter().any(|harmed| *harmed > setup.harm) {
        world.blame(HARM);
    }
    let in_progress = || world.store.iter().flatten().filter(|it| it.status == Status::InProgress);
    let outlived = |it: &IdempotencyRecord| it.lease_until.is_some_and(|end| end > it.expires_at);
    let reported = u32::from(setup.faults.errors - world.faults.errors);
    let (too_short, unreal) =
        (in_progress().any(outlived), in_progress().any(|it| it.failed_attempts > reported));
    if too_short {
        world.blame(EXPIRES_AFTER_LEASE);
    }
    if unreal {
        world.blame(FAILURES_ARE_REAL);
    }
    world.broken.retain(|name| !setup.lost.contains(name));
    if world.broken.is_empty() && !world.is_over() && !has_next_step(model, world) {
        world.blame(NOTHING_LOST);
    }
}

/// The running handlers with a claim of this key. Handlers of a machine that is due to wake are not
/// counted, because the driver asks the machine before it polls them.
fn running<'w>(
    model: &'w Explorer,
    world: &'w World,
    key: usize,
) -> impl Iterator<Item = &'w Running> {
    let is_due = |one: &&Invocation| one.own.wakes.is_some_and(|wakes| wakes <= world.now);
    let all = world.invocations.iter().filter(move |one| !is_due(one)).flat_map(|one| {
        one.own.running.iter().map(|handler| (one.own.records[handler.at], handler))
    });
    all.filter(move |(record, it)| model.setup.messages[*record].key == key && it.held.is_some())
        .map(|(_, handler)| handler)
}

/// How many believe that they hold a key.
fn owners(model: &Explorer, world: &World, key: usize) -> usize {
    let ours = running(model, world, key).filter(|handler| believed(world, handler).is_some());
    let of_key = |message: usize| model.setup.messages[message].key == key;
    let holds = |it: &Stranger| of_key(it.message) && world.now <= it.lease;
    ours.count() + usize::from(world.stranger.as_ref().is_some_and(holds))
}

/// Whether those who believe that they hold a key own the record, with a lease at least as long as they believe.
fn is_belief_true(model: &Explorer, world: &World, key: usize) -> bool {
    let stored = world.store[key].as_ref();
    running(model, world, key).all(|handler| match believed(world, handler) {
        None => true,
        Some((owner, lease)) => stored.is_some_and(|record| {
            record.status == Status::InProgress
                && record.owner == Some(owner)
                && record.lease_until >= Some(lease)
        }),
    })
}

/// The claim that a handler's worker believes to stand, by some clock, and until when.
pub(crate) fn believed(
    world: &World,
    handler: &Running,
) -> Option<(crate::core::record::Owner, Timestamp)> {
    let held = handler.held.as_ref()?;
    let lease = handler.lease.filter(|lease| world.now <= *lease)?;
    Some((held.claim.owner, lease))
}

fn has_next_step(model: &Explorer, world: &World) -> bool {
    if time::next(&model.setup, world).is_some() {
        return true;
    }
    let mut actions = Vec::new();
    model.actions(world, &mut actions);
    !actions.is_empty()
}
