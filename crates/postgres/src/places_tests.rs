use std::future::Future;

use futures_util::future::join_all;
use lambda_idempotency_core::clock::{BoxFuture, SystemClock, Timestamp};

use super::*;

const MOST: usize = 4;

fn enter(places: &Places, purpose: Purpose) -> Option<Place<'_>> {
    places.enter(purpose, &WithoutTimers).now_or_never()
}

/// A clock whose timers never end. Without a runtime, a semaphore is not told to let other tasks run.
struct WithoutTimers;

impl Clock for WithoutTimers {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH
    }

    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// As many places as there are for this purpose.
fn fill(places: &Places, purpose: Purpose) -> Vec<Place<'_>> {
    std::iter::from_fn(|| enter(places, purpose)).collect()
}

/// In paused time, how many milliseconds this took.
async fn millis(entering: impl Future<Output = Place<'_>>) -> u128 {
    let began = tokio::time::Instant::now();
    let place = entering.await;
    let took = began.elapsed().as_millis();
    assert!(!place.is_kept_open() || took == 0);
    took
}

#[test]
fn one_of_six_is_kept_for_calls_that_settle_and_none_of_one() {
    let most = |all| most_of(Purpose::Claim, all);
    assert_eq!([1, 2, 3, 4, 6, 7, 12, 13].map(most), [1, 1, 2, 3, 5, 5, 10, 10]);
    assert_eq!([1, 2, 4].map(|all| most_of(Purpose::Settle, all)), [1, 2, 4]);
}

#[tokio::test]
async fn claims_and_commits_leave_room_for_calls_that_settle() {
    for purpose in [Purpose::Claim, Purpose::Commit] {
        let places = Places::new(MOST);
        let held = fill(&places, purpose);
        assert_eq!(held.len(), 3);
        let settling = fill(&places, Purpose::Settle);
        assert_eq!(settling.len(), 1);
        drop(held);
        assert_eq!(fill(&places, Purpose::Settle).len(), 3, "they may use all");
    }
}

/// Who settles goes before commits, and these go before claims, whoever waited for longer.
#[test]
fn those_that_hurry_go_first() {
    for most in [1, MOST] {
        let places = Places::new(most);
        let mut held = fill(&places, Purpose::Commit);
        let _settling = fill(&places, Purpose::Settle);
        let purposes = [Purpose::Claim; 20].into_iter().chain([Purpose::Commit, Purpose::Settle]);
        let mut waiting: Vec<_> = purposes
            .map(|purpose| (purpose, Box::pin(places.enter(purpose, &WithoutTimers))))
            .collect();
        let mut first = || {
            // Each takes its turn when it is polled, so those that are polled first have to let others pass.
            for _ in 0..waiting.len() {
                for n in 0..waiting.len() {
                    if let Some(place) = (&mut waiting[n].1).now_or_never() {
                        return Some((waiting.remove(n).0, place));
                    }
                }
            }
            None
        };
        assert!(first().is_none(), "{most}");
        held.pop();
        let order: Vec<_> = std::iter::from_fn(|| first().map(|(purpose, _)| purpose)).collect();
        assert_eq!(order[..3], [Purpose::Settle, Purpose::Commit, Purpose::Claim], "{most}");
        assert_eq!(order.len(), 22);
    }
}

/// As the calls of a stream, while the body of the loop over it makes a claim.
#[tokio::test]
async fn a_call_that_is_not_polled_any_more_delays_a_claim_once() {
    let places = Places::new(MOST);
    let mut held = fill(&places, Purpose::Settle);
    let waiting = [Purpose::Commit, Purpose::Settle];
    let mut waiting = waiting.map(|purpose| Box::pin(places.enter(purpose, &SystemClock)));
    assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
    held.truncate(1);
    places.enter(Purpose::Claim, &SystemClock).await;
}

/// Connections of calls that are not polled any more never come back.
#[tokio::test(start_paused = true)]
async fn while_nothing_moves_one_of_those_that_wait_goes_on_at_a_time() {
    for (purpose, waits) in [
        (Purpose::Claim, [500, 1000, 1500]),
        (Purpose::Commit, [500, 1000, 1500]),
        (Purpose::Settle, [250, 500, 750]),
    ] {
        let places = Places::new(MOST);
        let held = fill(&places, Purpose::Settle);
        let goes_on = async |_| {
            let began = tokio::time::Instant::now();
            let place = places.enter(purpose, &SystemClock).await;
            let took = began.elapsed().as_millis();
            SystemClock.sleep(Duration::from_millis(10)).await;
            assert!(!place.is_kept_open());
            took
        };
        let took = join_all((0..3).map(goes_on)).await;
        assert_eq!(took, waits, "{purpose:?}");
        drop(held);
    }
}

/// Calls that settle have connections of their own, and go on with these.
#[tokio::test(start_paused = true)]
async fn what_settles_meanwhile_does_not_make_a_claim_wait_for_longer() {
    let places = Places::new(MOST);
    let held = fill(&places, Purpose::Claim);
    let settling = async {
        for _ in 0..20 {
            drop(places.enter(Purpose::Settle, &SystemClock).await);
            SystemClock.sleep(Duration::from_millis(100)).await;
        }
    };
    let claiming = pin!(millis(places.enter(Purpose::Claim, &SystemClock)));
    let Either::Left((took, _)) = select(claiming, pin!(settling)).await else {
        panic!("the claim waits");
    };
    assert_eq!(took, 500);
    drop(held);
}

/// A claim that waits lets a commit pass also when nothing moves.
#[tokio::test(start_paused = true)]
async fn a_commit_goes_on_before_claims_that_waited_for_longer() {
    let places = Places::new(MOST);
    let held = fill(&places, Purpose::Claim);
    let claims = join_all((0..20).map(|_| millis(places.enter(Purpose::Claim, &SystemClock))));
    let commit = async {
        SystemClock.sleep(Duration::from_millis(100)).await;
        millis(places.enter(Purpose::Commit, &SystemClock)).await
    };
    let Either::Right((took, _)) = select(pin!(claims), pin!(commit)).await else {
        panic!("the claims were first");
    };
    assert_eq!(took, 500);
    drop(held);
}
