//! Mistakes with places that the explorations have to find.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use super::isolation::{Isolation, Place};
use crate::{
    clock::Timestamp,
    isolation::{Steps, until},
};

/// Gives its place up without waking the waiting ones.
pub(crate) struct WakesNobody;

impl Steps for WakesNobody {
    fn give_up(place: Place) {
        mem::forget(place.isolation.lock().leave(place.ticket));
    }
}

/// Does not notice what has left between asking and waiting.
pub(crate) struct MissesWhoLeft;

impl Steps for MissesWhoLeft {
    fn poll_changed(place: &Place, context: &Context<'_>) -> Poll<()> {
        if place.poll_changed(context).is_ready() && place.poll_changed(context).is_ready() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// Looks whether a place is free and takes it, but not in one step.
pub(crate) struct LooksThenTakes;

impl Steps for LooksThenTakes {
    fn ask(
        isolation: &Arc<Isolation>,
        is_isolated: bool,
        now: Timestamp,
    ) -> (Place, Result<(), Timestamp>) {
        let free = isolation.lock().all.is_empty();
        let (place, asked) = isolation.ask(is_isolated, until(now), now);
        if free && asked.is_err() {
            let mut places = isolation.lock();
            let mine = places.all.iter_mut().find(|asked| asked.ticket == place.ticket);
            mine.unwrap().is_taken = true;
            return (place, Ok(()));
        }
        (place, asked)
    }
}

/// Those beside others do not wait for one that waits for isolation.
pub(crate) struct Overtakes;

impl Steps for Overtakes {
    fn ask_again(place: &Place, now: Timestamp) -> Result<(), Timestamp> {
        Self::overtake(place);
        place.ask(until(now), now)
    }

    fn ask(
        isolation: &Arc<Isolation>,
        is_isolated: bool,
        now: Timestamp,
    ) -> (Place, Result<(), Timestamp>) {
        let (place, _) = isolation.ask(is_isolated, until(now), now);
        Self::overtake(&place);
        let asked = place.ask(until(now), now);
        (place, asked)
    }
}

impl Overtakes {
    fn overtake(place: &Place) {
        let mut places = place.isolation.lock();
        places.all.make_contiguous().sort_by_key(|asked| (asked.is_isolated, asked.ticket));
    }
}

/// Keeps its place in the queue when its invocation is dropped.
pub(crate) struct StaysWhenCancelled;

impl Steps for StaysWhenCancelled {
    fn cancel(place: Place) {
        mem::forget(place);
    }
}

/// Takes no notice of the end of a place.
pub(crate) struct NeverLapses;

impl Steps for NeverLapses {
    fn ask(
        isolation: &Arc<Isolation>,
        is_isolated: bool,
        now: Timestamp,
    ) -> (Place, Result<(), Timestamp>) {
        isolation.ask(is_isolated, until(now), Timestamp::EPOCH)
    }

    fn ask_again(place: &Place, now: Timestamp) -> Result<(), Timestamp> {
        place.ask(until(now), Timestamp::EPOCH)
    }
}
