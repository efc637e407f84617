//! A function in Python or TypeScript that uses Powertools for AWS Lambda and shares the table: which guarantees hold beside
//! it, and for each lost guarantee the steps that break it.
//!
//! Its requests are those of Powertools for Python 3.37 and TypeScript 2.35. The claim is one conditional `PutItem`, without
//! clock skew. The completion (`UpdateItem`) and, after a failure, the deletion (`DeleteItem`) have **no condition**: they
//! change any record of the key.
//!
//! A guarantee that is documented as lost is *asserted* to be lost: the checker has to find the steps. So a change that
//! restores one fails a test, and the documentation stays correct.

use std::time::Duration;

use crate::{
    core::{
        clock::Timestamp,
        policy::Lease,
        record::{IdempotencyRecord, Status},
    },
    explorer::{Action, Explorer},
    properties::{
        BELIEF_IS_TRUE, COUNTS_KEPT, FENCED, FENCES_OUTLIVE, FINAL, NOT_OVERWRITTEN, ONE_HANDLER,
        ONE_OWNER,
    },
    run::{catch, hold, lose},
    setup::{Message, SKEW, Setup},
    world::{Faults, Place, Stranger, World},
    worlds::NONE,
};

/// A function that uses Powertools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Powertools {
    /// Whether it can outlive the lease that it claimed; if not, it is killed when that ends.
    outlives: bool,
    /// Whether its clock can be ahead.
    pub(crate) is_ahead: bool,
}

/// How its handler ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It writes the result.
    Completes,
    /// It deletes the record and raises the error.
    Fails,
    /// It is killed, and writes nothing.
    Dies,
}

/// `attribute_not_exists(id) OR expiration < :now OR (status = INPROGRESS AND
/// attribute_exists(in_progress_expiration) AND in_progress_expiration < :now_in_millis)`
fn is_free(found: Option<&IdempotencyRecord>, now: Timestamp) -> bool {
    found.is_none_or(|record| {
        let lapsed = record.lease_until.is_some_and(|lease| lease < now);
        record.expires_at < now || record.status == Status::InProgress && lapsed
    })
}

impl Explorer {
    /// What the function can do next.
    pub(crate) fn stranger_actions(&self, world: &World, actions: &mut Vec<Action>) {
        let Some(powertools) = self.setup.powertools else { return };
        if world.stranger.is_some() {
            let fates = [
                (Fate::Completes, true),
                (Fate::Fails, world.faults.errors > 0),
                (Fate::Dies, world.faults.deaths > 0),
            ];
            let fates = fates.into_iter().filter(|(_, can)| *can);
            return actions.extend(fates.map(|(fate, _)| Action::StrangerEnds { fate }));
        }
        let Some(message) = self.deliverable(world, 0).first().copied() else { return };
        let found = world.store[self.setup.messages[message].key].as_ref();
        for is_ahead in [false, true].into_iter().filter(|it| powertools.is_ahead || !it) {
            let is_completed = found.is_some_and(|record| record.status == Status::Completed);
            if is_completed || is_free(found, clock(world, is_ahead)) {
                actions.push(Action::StrangerTakes { message, is_ahead });
            }
        }
    }

    /// The function takes a message, and claims its key or replays its completion.
    pub(crate) fn stranger_takes(&self, world: &mut World, message: usize, is_ahead: bool) {
        let (setup, key) = (&self.setup, self.setup.messages[message].key);
        let (now, found) = (clock(world, is_ahead), world.store[key].clone());
        if !is_free(found.as_ref(), now) {
            setup.witness.saw("stranger replayed");
            world.source[message].place = Place::Acknowledged;
            return;
        }
        let held = found.as_ref().filter(|old| old.status == Status::InProgress);
        if held.is_some() {
            setup.witness.saw("stranger took over");
        }
        if held.is_some_and(|old| old.lease_until.is_some_and(|end| world.now <= end)) {
            world.blame(ONE_OWNER);
        }
        replaces(world, key);
        let lease = now.plus(setup.timeout.unwrap_or_default());
        let mut record =
            IdempotencyRecord::new(Status::InProgress, now.plus(setup.policy.retention));
        record.lease_until = Some(lease);
        world.store[key] = Some(record);
        world.source[message].place = Place::InFlight(world.now.plus(setup.visibility));
        world.stranger = Some(Stranger { message, lease });
    }

    /// Its handler ends.
    pub(crate) fn stranger_ends(&self, world: &mut World, fate: Fate) {
        let Some(Stranger { message, .. }) = world.stranger.take() else { return };
        let key = self.setup.messages[message].key;
        match fate {
            Fate::Completes => {
                overwrites(world, key);
                let expires_at = world.now.plus(self.setup.policy.retention).ceil_to_second();
                // The update keeps every other attribute, whichever worker wrote it.
                let record = world.store[key]
                    .get_or_insert_with(|| IdempotencyRecord::new(Status::Completed, expires_at));
                record.status = Status::Completed;
                record.expires_at = expires_at;
                world.effects[key].add(self.setup.messages[message].payload);
                world.source[message].place = Place::Acknowledged;
                return;
            }
            Fate::Fails => {
                replaces(world, key);
                world.store[key] = None;
            }
            Fate::Dies => {}
        }
        if let Place::InFlight(visible) = world.source[message].place {
            world.source[message].place = Place::Source(visible);
        }
    }

    /// Time has passed: Lambda kills a function whose deadline has passed.
    pub(crate) fn kill_stranger(&self, world: &mut World) {
        let is_over = world.stranger.is_some_and(|stranger| world.now > stranger.lease);
        if is_over && self.setup.powertools.is_some_and(|powertools| !powertools.outlives) {
            self.stranger_ends(world, Fate::Dies);
        }
    }
}

fn clock(world: &World, is_ahead: bool) -> Timestamp {
    if is_ahead { world.now.plus(SKEW) } else { world.now }
}

/// Its write changes the record of this key.
fn overwrites(world: &mut World, key: usize) {
    let Some(old) = world.store[key].as_ref() else { return };
    let is_completed = old.status == Status::Completed;
    if old.status != Status::InProgress && world.now <= old.expires_at {
        world.blame(NOT_OVERWRITTEN);
    }
    world.gone[key] |= is_completed;
}

/// Its write replaces the record of this key, or deletes it.
fn replaces(world: &mut World, key: usize) {
    overwrites(world, key);
    let counts = |old: &IdempotencyRecord| {
        old.status == Status::InProgress && old.failed_attempts + old.lost_attempts > 0
    };
    if world.store[key].as_ref().is_some_and(counts) {
        world.blame(COUNTS_KEPT);
    }
}

fn fleet(name: &'static str, outlives: bool, is_ahead: bool) -> Setup {
    Setup::new(name, &[0, 0])
        .with(|world| {
            world.batch = 1;
            world.powertools = Some(Powertools { outlives, is_ahead });
            world.takes = Duration::from_secs(1);
            world.receives = 3;
            world.faults = Faults { losses: 1, errors: 1, hangs: 1, ..NONE };
        })
        .policy(|policy| policy.retention = Duration::from_secs(10))
}

/// As Lambda runs them: killed at the deadline, which is the end of their lease, and with clocks that are not ahead of ours.
fn in_time() -> Setup {
    fleet("with Powertools, killed in time", false, false).with(|world| {
        world.lost = &[COUNTS_KEPT, FENCES_OUTLIVE];
        world.expect =
            &["stranger took over", "stranger replayed", "takeover", "replayed", "superseded"];
    })
}

const LATE: &[&str] =
    &[BELIEF_IS_TRUE, COUNTS_KEPT, ONE_HANDLER, ONE_OWNER, NOT_OVERWRITTEN, FENCES_OUTLIVE];

/// All other guarantees hold: no delivery is lost, no key stays locked, our writes stay fenced.
fn late_and_ahead() -> Setup {
    fleet("with Powertools, late and ahead", true, true).with(|world| {
        world.lost = LATE;
        world.expect = &["stranger took over", "stranger replayed", "replayed", "fenced"];
    })
}

/// With a third message, and another process that takes it.
fn larger(name: &'static str, outlives: bool, is_ahead: bool) -> Setup {
    let message = Message { key: 0, payload: 0 };
    fleet(name, outlives, is_ahead).with(|world| {
        world.processes = 2;
        world.messages.push(message);
        world.faults.losses = 0;
    })
}

fn late() -> Setup {
    larger("with late Powertools", true, false)
}

fn ahead() -> Setup {
    let world = larger("with Powertools ahead", false, true);
    world.policy(|policy| policy.lease = Lease::Renewed { length: Duration::from_secs(1) })
}

tests! {
    powertools_functions_that_end_with_their_leases: hold(in_time());
    powertools_functions_that_are_late_and_ahead: hold(late_and_ahead());
    /// A takeover by Powertools puts only its own attributes, and its deletion removes the record.
    powertools_loses_attempt_counts_and_fences: lose(&[COUNTS_KEPT, FENCES_OUTLIVE], || {
        larger("with Powertools", false, false).with(|world| world.faults.errors = 2)
    });
    /// A Powertools function that outlives its lease overwrites its successor's record.
    a_late_powertools_function_overwrites_its_successor:
        lose(&[NOT_OVERWRITTEN, BELIEF_IS_TRUE, ONE_OWNER], late);
    /// Powertools has no clock skew: a function whose clock is ahead takes over while our handler runs.
    a_powertools_function_whose_clock_is_ahead_takes_over_early:
        lose(&[ONE_OWNER, BELIEF_IS_TRUE, NOT_OVERWRITTEN], ahead);
    /// The lost guarantees are lost by writes of Powertools only: our own that overwrite records break other properties.
    our_completions_do_not_overwrite_those_of_powertools:
        catch("CompletesWhatIsGone", FENCED, late_and_ahead);
    our_claims_do_not_overwrite_those_of_powertools:
        catch("CompletedIsNotClaimed", FINAL, late_and_ahead);
}
