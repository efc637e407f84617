use lambda_idempotency_core::policy::Lease;

use super::super::testing::{START, after, call, held};
use super::*;

/// The length of a lease that is renewed.
const LENGTH: Duration = Duration::from_secs(30);

/// Leases of 30 s, renewed within an invocation of 5 minutes.
fn leases() -> Leases {
    let mut policy = Policy::default();
    policy.lease = Lease::Renewed { length: LENGTH };
    policy.lease_grace = Duration::ZERO;
    Leases::new(Terms::new(&policy, after(300_000)))
}

/// Leases with that of record 0, which ends after 30 s and is to be renewed after 10 s.
fn one() -> Leases {
    let mut leases = leases();
    leases.keep(0, &held(30_000));
    leases
}

/// Sends what is due: the deadline of the call, if there is one.
fn send(leases: &mut Leases, now: Timestamp) -> Option<Timestamp> {
    let (key, held) = (Key::from_text("op#a"), held(30_000));
    leases.send(call(), now, after(300_000), |_| Some((&key, &held))).map(|(writes, deadline)| {
        assert_eq!(writes.len(), 1);
        deadline
    })
}

fn lapsed(leases: &mut Leases, now: Timestamp) -> usize {
    leases.take_lapsed(now).len()
}

#[test]
fn a_lease_is_renewed_when_a_third_of_it_is_over() {
    let mut leases = one();
    assert_eq!(leases.next_due(START), Some(after(10_000)));
    assert_eq!(send(&mut leases, after(9_999)), None);
    assert_eq!(send(&mut leases, after(10_000)), Some(after(15_000)), "5 s for the call");
}

#[test]
fn a_lease_stands_up_to_and_including_its_end() {
    let mut leases = one();
    assert_eq!(lapsed(&mut leases, after(30_000)), 0);
    assert_eq!(lapsed(&mut leases, after(30_001)), 1);
    assert_eq!(lapsed(&mut leases, after(30_002)), 0, "it is taken once");
}

/// Another one is due before, so that all are looked at.
#[test]
fn a_lease_whose_renewal_is_on_its_way_stands_up_to_its_end() {
    let mut leases = one();
    send(&mut leases, after(20_000));
    leases.keep(1, &held(31_000));
    assert_eq!(lapsed(&mut leases, after(30_000)), 0);
    assert_eq!(lapsed(&mut leases, after(30_001)), 1);
}

#[test]
fn a_lease_whose_renewal_is_on_its_way_lapses_as_well() {
    let mut leases = one();
    send(&mut leases, after(20_000));
    assert_eq!(lapsed(&mut leases, after(29_000)), 0);
    assert_eq!(lapsed(&mut leases, after(30_000)), 0);
    assert_eq!(lapsed(&mut leases, after(30_001)), 1);
}

#[test]
fn a_lease_that_is_not_needed_any_more_asks_for_nothing() {
    let mut leases = one();
    leases.forget(0);
    assert_eq!(leases.next_due(START), None);
    assert_eq!(send(&mut leases, after(10_000)), None);
    assert_eq!(lapsed(&mut leases, after(30_001)), 0);
}

#[test]
fn after_one_lease_has_lapsed_the_next_one_is_still_watched() {
    let mut leases = one();
    leases.keep(1, &held(40_000));
    assert_eq!(lapsed(&mut leases, after(30_001)), 1);
    assert_eq!(lapsed(&mut leases, after(40_000)), 0);
    assert_eq!(lapsed(&mut leases, after(40_001)), 1);
}

#[test]
fn renewals_wait_a_sixth_of_the_length_for_the_call_before_at_most() {
    let mut policy = Policy::default();
    policy.lease = Lease::Renewed { length: Duration::from_secs(3) };
    let mut leases = Leases::new(Terms::new(&policy, after(300_000)));
    leases.keep(0, &held(3_000));
    leases.keep(1, &held(3_100));
    assert_eq!(send(&mut leases, after(1_000)), Some(after(1_500)));
    assert_eq!(
        leases.next_due(after(1_000)),
        Some(after(1_500)),
        "not while that may be back soon"
    );
    assert_eq!(send(&mut leases, after(1_499)), None);
    assert!(send(&mut leases, after(1_500)).is_some());
}

#[test]
fn each_try_of_a_renewal_may_take_longer_until_the_lease_ends() {
    let mut leases = one();
    let mut now = after(10_000);
    for deadline in [15_000, 25_200, 30_000] {
        assert_eq!(send(&mut leases, now), Some(after(deadline)));
        now = after(deadline);
        for kept in leases.written(call(), now).unwrap().members {
            leases.unanswered(kept, now);
        }
        now = now.plus(PAUSE);
    }
}
