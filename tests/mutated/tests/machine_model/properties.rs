//! The properties that must hold in every state.

use stateright::{Model as _, Property};

use crate::{
    explorer::Explorer,
    time,
    world::{Invocation, World},
};

/// At most one handler of a key runs, in all invocations.
pub(crate) const ONE_HANDLER: &str = "I1 one handler at a time";
/// No key is taken over before its lease has ended in true time.
pub(crate) const ONE_OWNER: &str = "I1 one owner";
/// A handler starts only while its invocation owns the record.
pub(crate) const STARTS_AS_OWNER: &str = "I1 only the owner starts";
/// A settled record stays until it expires.
pub(crate) const FINAL: &str = "I3 completed is final";
/// A delivery is acknowledged only if its key is completed, or its completion was lost.
pub(crate) const ACKNOWLEDGED_LAST: &str = "I4 acknowledged after completion";
/// Until every message is acknowledged or failed permanently, a next step exists.
pub(crate) const NOTHING_LOST: &str = "I4 nothing is lost";
/// Completions, permanent failures and permanent timeouts are recorded, unless the store failed.
pub(crate) const RECORDED: &str = "I4 ended attempts are recorded";
/// No handler of an ordered group starts before those of all earlier records have succeeded, and where a
/// failure ends the batch, none behind a record that has failed.
pub(crate) const IN_ORDER: &str = "I5 order is kept";
/// A record that may have killed a process runs beside the others of its quarantine group only: they
/// have one suspicion, and are the fewer the greater that is. Nothing else is claimed meanwhile.
pub(crate) const ALONE: &str = "I5 quarantine is kept";
/// A record that kills its process stops another record's handler with it so often at most.
pub(crate) const HARM: &str = "I5 harm by a bad record is bounded";
/// No delivery is acknowledged by the completion of another payload.
pub(crate) const OWN_ANSWER: &str = "I6 no answer from another payload";
/// A record has one claim, and none while its handler runs.
pub(crate) const CLAIMED_ONCE: &str = "a record is claimed once";
/// The call of a renewal ends no later than the lease.
pub(crate) const RENEWED_IN_TIME: &str = "a renewal ends with its lease";
/// The counts of failed and lost attempts are kept until the key is settled.
pub(crate) const COUNTS_KEPT: &str = "attempt counts are kept";
/// No handler starts while the effect of a stopped one may still happen.
pub(crate) const STOPPED_COUNTS: &str = "no handler starts beside a stopped one";
/// A record that was claimed and not started leaves its key free, unless the store failed.
pub(crate) const UNDONE: &str = "an unstarted record locks no key";
/// A machine that waits has an instant at which it wakes, and does not wake endlessly without a change.
pub(crate) const WAKES: &str = "a waiting machine wakes";
/// An invocation returns its response before its deadline.
pub(crate) const IN_TIME: &str = "I4 the response is in time";
/// After the last fault a message is received at most as often as its world states, until it is
/// acknowledged or failed permanently.
pub(crate) const RECOVERY: &str = "I12 recovery is bounded";

/// Where operations are transactional, a key is completed together with the effects of one handler, once.
pub(crate) const COMMITTED_ONCE: &str = "I16 effects are committed once";

/// A step that a handler relied on is known to every later attempt, until the key is settled.
pub(crate) const STEPS_KEPT: &str = "steps are kept";
/// Messages arrive in their order, with the ids that follow from their key, and after their completion, unless that was
/// lost.
pub(crate) const SENT_AFTER_COMPLETION: &str = "I16 messages follow their completion";
/// A delivery is acknowledged only when the messages of its key have arrived.
pub(crate) const ACKNOWLEDGED_SENT: &str = "I16 acknowledged after its messages";
/// A record says that its messages are sent only when they have arrived.
pub(crate) const MARKED_SENT: &str = "I16 marked after sending";

flaws! {
    TakenWhileHeld: ONE_OWNER,
    StartedWithoutKey: STARTS_AS_OWNER,
    NotFinal: FINAL,
    CountsLost: COUNTS_KEPT,
    AcknowledgedTooSoon: ACKNOWLEDGED_LAST,
    AnsweredByAnother: OWN_ANSWER,
    OrderBroken: IN_ORDER,
    StartedBesideStopped: STOPPED_COUNTS,
    NotAlone: ALONE,
    ClaimedTwice: CLAIMED_ONCE,
    RenewalOutlastsLease: RENEWED_IN_TIME,
    NotRecorded: RECORDED,
    NeverWakes: WAKES,
    TooLate: IN_TIME,
    LockedInVain: UNDONE,
    ReceivedTooOften: RECOVERY,
    NotCommittedOnce: COMMITTED_ONCE,
    StepForgotten: STEPS_KEPT,
    SentTooSoon: SENT_AFTER_COMPLETION,
    AcknowledgedUnsent: ACKNOWLEDGED_SENT,
    MarkedUnsent: MARKED_SENT,
}

/// The properties of every world.
pub(crate) fn all() -> Vec<Property<Explorer>> {
    let mut all = without_flaws();
    all.extend([
        Property::always(ONE_HANDLER, |model: &Explorer, world: &World| {
            // Without claims, of the handlers of a key one is committed.
            !model.setup.policy.mode.claims()
                || (0..model.setup.keys.len()).all(|key| running(model, world, key) <= 1)
        }),
        Property::always(NOTHING_LOST, |model: &Explorer, world: &World| {
            world.is_over() || world.flaws.any() || has_next_step(model, world)
        }),
        Property::always(HARM, |model: &Explorer, world: &World| {
            world.harmed.iter().all(|harmed| *harmed <= model.setup.harm)
        }),
    ]);
    all
}

/// The number of running handlers with a claim of this key. Handlers of a machine that is due to wake are
/// not counted, because the driver asks the machine before it polls them.
fn running(model: &Explorer, world: &World, key: usize) -> usize {
    let is_due = |one: &&Invocation| one.own.wakes.is_some_and(|wakes| wakes <= world.now);
    let all = world.invocations.iter().filter(|one| !is_due(one)).flat_map(|one| {
        one.own.running.iter().map(|handler| (one.own.records[handler.at], &handler.held))
    });
    all.filter(|(record, held)| model.setup.messages[*record].key == key && held.is_some()).count()
}

fn has_next_step(model: &Explorer, world: &World) -> bool {
    if time::next(world).is_some() {
        return true;
    }
    let mut actions = Vec::new();
    model.actions(world, &mut actions);
    !actions.is_empty()
}
