//! One leads, the others follow. All orders of events are in `tests/shuttle`.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use super::single_flight::{Follower, Joined, Leader, SingleFlight};
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Status},
};
use lambda_idempotency_keys::Key;

const NOW: Timestamp = Timestamp::from_secs(1000);
const END: Timestamp = Timestamp::from_secs(1030);

fn join(single_flight: &Arc<SingleFlight>, key: &str, now: Timestamp) -> Joined {
    single_flight.join(&Key::from_text(key), now, END)
}

fn lead(single_flight: &Arc<SingleFlight>, key: &str, now: Timestamp) -> Leader {
    match join(single_flight, key, now) {
        Joined::Leader(lead) => lead,
        Joined::Follower(_) => panic!("held"),
    }
}

fn follow(single_flight: &Arc<SingleFlight>, key: &str, now: Timestamp) -> Follower {
    match join(single_flight, key, now) {
        Joined::Follower(follow) => follow,
        Joined::Leader(_) => panic!("free"),
    }
}

#[test]
fn one_leads_and_the_others_follow_until_it_is_through() {
    let single_flight = Arc::new(SingleFlight::default());
    let first = lead(&single_flight, "a", NOW);
    let other = lead(&single_flight, "b", NOW);
    let follower = follow(&single_flight, "a", NOW);
    assert_eq!(follower.until(), END);
    let mut finished = Box::pin(follower.finished());
    assert!(finished.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(finished.now_or_never(), Some(None));
    let _second = lead(&single_flight, "a", NOW);
    drop(other);
    let _third = lead(&single_flight, "b", NOW);
}

#[test]
fn followers_are_told_what_the_leader_learnt() {
    let single_flight = Arc::new(SingleFlight::default());
    let mut first = lead(&single_flight, "a", NOW);
    let followers = [follow(&single_flight, "a", NOW), follow(&single_flight, "a", NOW)];
    let record = Arc::new(IdempotencyRecord::new(Status::Completed, END));
    first.learn(Arc::clone(&record));
    drop(first);
    for follower in followers {
        assert_eq!(follower.finished().now_or_never(), Some(Some(Arc::clone(&record))));
    }
}

#[test]
fn a_lead_that_outlives_its_lease_holds_nobody_up() {
    let single_flight = Arc::new(SingleFlight::default());
    let zombie = lead(&single_flight, "a", NOW);
    let follower = follow(&single_flight, "a", END);
    let later = END.plus(Duration::from_millis(1));
    let until = later.plus(Duration::from_secs(30));
    let Joined::Leader(successor) = single_flight.join(&Key::from_text("a"), later, until) else {
        panic!("the lease is over")
    };
    assert_eq!(follower.finished().now_or_never(), Some(None), "it wakes to follow the other");
    drop(zombie);
    let follower = follow(&single_flight, "a", later);
    drop(successor);
    assert_eq!(follower.finished().now_or_never(), Some(None));
}
