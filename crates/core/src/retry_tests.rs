//! Limits and pauses, with a clock that steps, and what a failure says.

use std::{future::poll_fn, pin::pin, sync::Mutex, task::Poll, time::Duration};

use super::*;
use crate::clock::{BoxFuture, Clock, Timestamp};

/// Sleeps by stepping, and keeps how long it slept.
#[derive(Default)]
struct Stepped(Mutex<Vec<Duration>>);

impl Clock for Stepped {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH.plus(self.0.lock().unwrap().iter().sum())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.0.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }
}

fn budget(clock: &Stepped, millis: u64) -> Budget<'_> {
    Budget::new(clock, Duration::from_secs(1), Timestamp::from_millis(millis))
}

#[tokio::test]
async fn each_attempt_that_timed_out_makes_the_next_longer() {
    let clock = Stepped::default();
    let budget = budget(&clock, 5000);
    // Each waits a millisecond more for an answer that is yet to be read, and the last has what is left.
    for limit in [1000, 2000, 1998, 0] {
        let late = budget.attempt(budget.limit(), std::future::pending::<()>()).await;
        assert_eq!(late, Err(TimedOut(Duration::from_millis(limit))));
    }
    let answer = budget.attempt(budget.limit(), std::future::ready(1)).await;
    assert_eq!(answer, Ok(1), "an answer counts");
}

#[tokio::test]
async fn a_wait_with_its_own_limit_changes_no_other() {
    let clock = Stepped::default();
    let budget = budget(&clock, 5000);
    let late = budget.within(Duration::from_millis(7), std::future::pending::<()>()).await;
    assert_eq!(late, Err(TimedOut(Duration::from_millis(7))));
    assert_eq!(budget.limit(), Duration::from_secs(1));
}

/// As in a process that had no processor for a second: the time is over, and the task that reads the answer is polled
/// after the one that waits for it.
#[tokio::test]
async fn an_answer_that_another_task_has_yet_to_read_counts() {
    let clock = Stepped::default();
    let budget = budget(&clock, 5000);
    let (sender, answer) = tokio::sync::oneshot::channel();
    let (answer, read) = tokio::join!(
        biased;
        budget.attempt(budget.limit(), answer),
        async { sender.send(7) },
    );
    assert_eq!((answer, read), (Ok(Ok(7)), Ok(())));
    assert_eq!(budget.limit(), Duration::from_secs(1), "the next request may take no longer");
}

/// The paused time of the runtime.
struct Paused(tokio::time::Instant);

impl Clock for Paused {
    fn now(&self) -> Timestamp {
        Timestamp::EPOCH.plus(self.0.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A call that polls many requests polls one again as soon as that has woken it.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_polled_again_at_once_has_a_turn_of_the_executor() {
    let clock = Paused(tokio::time::Instant::now());
    let budget = Budget::new(&clock, Duration::from_millis(20), Timestamp::from_secs(5));
    let (sender, answer) = tokio::sync::oneshot::channel();
    let mut request = pin!(budget.attempt(budget.limit(), answer));
    let polled_twice = poll_fn(|cx| match request.as_mut().poll(cx) {
        Poll::Pending => request.as_mut().poll(cx),
        ready => ready,
    });
    let (answer, ()) = tokio::join!(biased; polled_twice, async {
        // No processor for a while: the time is over, and the answer is read after the request was polled.
        tokio::task::yield_now().await;
        tokio::time::advance(Duration::from_millis(50)).await;
        tokio::task::yield_now().await;
        sender.send(7).ok();
    });
    assert_eq!(answer, Ok(Ok(7)));
}

#[test]
fn the_random_share_of_a_pause_is_between_none_and_all() {
    let shares: Vec<f64> = (0..32).map(|_| random_share()).collect();
    assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    assert!(shares.windows(2).any(|two| two[0] != two[1]), "{shares:?}");
}

#[tokio::test]
async fn pauses_double_and_end_before_the_deadline() {
    let clock = Stepped::default();
    let pauses = (Duration::from_millis(25), Duration::from_millis(400));
    let mut backoff = Backoff::new(pauses, Duration::from_millis(20));
    while backoff.pause(&budget(&clock, 3000)).await {}
    let pauses = clock.0.lock().unwrap();
    for (pause, whole) in pauses.iter().zip([25, 50, 100, 200, 400, 400, 400, 400]) {
        let whole = Duration::from_millis(whole);
        assert!((whole / 2..=whole).contains(pause), "{pause:?} of {whole:?}");
    }
    assert!(pauses.iter().sum::<Duration>() < Duration::from_secs(3));
    assert!(pauses.len() > 8);
}

#[tokio::test]
async fn pauses_of_one_seed_are_the_same_and_of_two_are_not() {
    let mut all = Vec::new();
    for seed in [1, 1, 2] {
        let clock = Stepped::default();
        let pauses = (Duration::from_millis(25), Duration::from_millis(400));
        let mut backoff = Backoff::new(pauses, Duration::from_millis(20)).seeded(seed);
        while backoff.pause(&budget(&clock, 3000)).await {}
        all.push(clock.0.into_inner().unwrap());
    }
    assert_eq!(all[0], all[1]);
    assert_ne!(all[0], all[2]);
}

#[test]
fn a_report_says_that_an_earlier_attempt_is_in_doubt() {
    let refused = RequestFailure::<()>::new(StoreErrorKind::Refused, "refused").because("22000");
    let error = refused.clone().report(true);
    assert!(error.may_have_applied());
    assert_eq!(
        error.to_string(),
        "refused by the store: an attempt had no answer and may have been applied; after it: refused"
    );
    let error = refused.report(false);
    assert!(!error.may_have_applied());
    assert_eq!(chain(&error), "refused by the store: refused: 22000");
}

#[test]
fn a_message_ends_before_what_it_quotes() {
    for message in ["value of key \"s3cr3t\"", "value of key 's3cr3t'", "value of key „s3cr3t“"]
    {
        assert_eq!(unquoted(message), "value of key");
    }
    assert_eq!(unquoted("no space left"), "no space left");
}
