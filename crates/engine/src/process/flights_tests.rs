//! One leads, the others follow. All orders of events are in `tests/shuttle`.

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt as _;

use super::flights::{Boarding, Flights, Follow, Lead};
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{Record, Status},
};
use lambda_idempotency_keys::Key;

const NOW: Timestamp = Timestamp::from_secs(1000);
const END: Timestamp = Timestamp::from_secs(1030);

fn board(flights: &Arc<Flights>, key: &str, now: Timestamp) -> Boarding {
    flights.board(&Key::from_text(key), now, END)
}

fn lead(flights: &Arc<Flights>, key: &str, now: Timestamp) -> Lead {
    match board(flights, key, now) {
        Boarding::Leads(lead) => lead,
        Boarding::Follows(_) => panic!("held"),
    }
}

fn follow(flights: &Arc<Flights>, key: &str, now: Timestamp) -> Follow {
    match board(flights, key, now) {
        Boarding::Follows(follow) => follow,
        Boarding::Leads(_) => panic!("free"),
    }
}

#[test]
fn one_leads_and_the_others_follow_until_it_is_through() {
    let flights = Arc::new(Flights::default());
    let first = lead(&flights, "a", NOW);
    let other = lead(&flights, "b", NOW);
    let follower = follow(&flights, "a", NOW);
    assert_eq!(follower.until(), END);
    let mut landed = Box::pin(follower.landed());
    assert!(landed.as_mut().now_or_never().is_none());
    drop(first);
    assert_eq!(landed.now_or_never(), Some(None));
    let _second = lead(&flights, "a", NOW);
    drop(other);
    let _third = lead(&flights, "b", NOW);
}

#[test]
fn followers_are_told_what_the_leader_learnt() {
    let flights = Arc::new(Flights::default());
    let mut first = lead(&flights, "a", NOW);
    let followers = [follow(&flights, "a", NOW), follow(&flights, "a", NOW)];
    let record = Arc::new(Record::new(Status::Completed, END));
    first.learn(Arc::clone(&record));
    drop(first);
    for follower in followers {
        assert_eq!(follower.landed().now_or_never(), Some(Some(Arc::clone(&record))));
    }
}

#[test]
fn a_lead_that_outlives_its_lease_holds_nobody_up() {
    let flights = Arc::new(Flights::default());
    let zombie = lead(&flights, "a", NOW);
    let follower = follow(&flights, "a", END);
    let later = END.plus(Duration::from_millis(1));
    let until = later.plus(Duration::from_secs(30));
    let Boarding::Leads(successor) = flights.board(&Key::from_text("a"), later, until) else {
        panic!("the lease is over")
    };
    assert_eq!(follower.landed().now_or_never(), Some(None), "it wakes to follow the other");
    drop(zombie);
    let follower = follow(&flights, "a", later);
    drop(successor);
    assert_eq!(follower.landed().now_or_never(), Some(None));
}
