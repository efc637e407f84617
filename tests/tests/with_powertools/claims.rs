//! Work that one side has begun: the other does not begin it, until it failed or its lease has ended.

use std::{future::pending, time::Duration};

use lambda_idempotency::{Failure, Run, RunError, clock::Timestamp};
use serde_json::Value;
use tokio::sync::Notify;

use crate::{
    Language, Shared,
    ours::{assert_executed, assert_replayed, raw},
    theirs::{Call, LEASE, Settings, executed, refused, replayed},
};

const EVENT: &str = r#"{"id": "A-1"}"#;
const IN_PROGRESS: &str = "IdempotencyAlreadyInProgressError";

/// How far clocks may differ, in milliseconds.
const CLOCK_SKEW: i64 = 1_000;

fn millis(duration: Duration) -> i64 {
    duration.as_millis().try_into().unwrap()
}

/// Our attempt while they hold the key: until when, as we were told.
#[track_caller]
fn busy(run: Result<Run<Value>, RunError>) -> Timestamp {
    match run {
        Err(RunError::Busy { until }) => until,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_powertools_has_begun_is_not_begun_here() {
    for language in Language::BOTH {
        let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
        shared.theirs.begin(&settings, Call::new(EVENT, "1"));
        busy(shared.ours.run(&settings, EVENT, "2").await);
        assert_eq!(shared.theirs.go_on(), executed("1"));
        assert_replayed(shared.ours.run(&settings, EVENT, "2").await, "1");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_begun_here_is_not_begun_by_powertools() {
    for language in Language::BOTH {
        let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
        let theirs = &mut shared.theirs;
        let ask = async || Ok::<_, Failure>(theirs.call(&settings, Call::new(EVENT, "2")));
        let run = shared.ours.run_with(&settings, EVENT, ask).await;
        let answer = refused(IN_PROGRESS).to_string();
        assert_executed(run, &answer);
        assert_eq!(shared.theirs.call(&settings, Call::new(EVENT, "2")), replayed(&answer));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_on_one_side_is_tried_on_the_other() {
    for language in Language::BOTH {
        let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
        let failed = shared.theirs.call(&settings, Call::failing(EVENT));
        assert_eq!(failed["executed"], 1, "{failed}");
        assert_executed(shared.ours.run(&settings, EVENT, "1").await, "1");
        shared.empty();

        let fail = async || Err::<Value, _>(Failure::transient("the work failed"));
        let failed = shared.ours.run_with(&settings, EVENT, fail).await;
        assert!(matches!(failed, Err(RunError::Failed(_))), "{failed:?}");
        assert_eq!(shared.theirs.call(&settings, Call::new(EVENT, "1")), executed("1"));
        assert_replayed(shared.ours.run(&settings, EVENT, "2").await, "1");
    }
}

/// Powertools does not know this status, and fails instead of doing the work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_failed_permanently_here_is_an_error_of_powertools() {
    for language in Language::BOTH {
        let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
        let fail = async || Err::<Value, _>(Failure::permanent("the work cannot be done"));
        let failed = shared.ours.run_with(&settings, EVENT, fail).await;
        assert!(matches!(failed, Err(RunError::Failed(_))), "{failed:?}");
        let answer = shared.theirs.call(&settings, Call::new(EVENT, "1"));
        assert_eq!(answer["executed"], 0, "{answer}");
        assert!(answer["error"].is_string(), "{answer}");
        let again = shared.ours.run(&settings, EVENT, "1").await;
        assert!(matches!(again, Err(RunError::PermanentlyFailed { .. })), "{again:?}");
    }
}

/// The process of Powertools dies in the middle of its work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_dead_powertools_is_done_here_after_its_lease() {
    for language in Language::BOTH {
        let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
        shared.theirs.begin(&settings, Call::new(EVENT, "1"));
        shared.theirs.kill();
        let ends = busy(shared.ours.run(&settings, EVENT, "2").await);
        let lease = millis(ends.since(shared.ours.now()));
        assert!((1..=LEASE + CLOCK_SKEW).contains(&lease), "{lease} ms");
        busy(shared.ours.after(lease / 2).run(&settings, EVENT, "2").await);
        let later = shared.ours.after(lease + 1000);
        assert_executed(later.run(&settings, EVENT, "2").await, "2");
    }
}

/// Our process dies in the middle of its work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_work_of_a_dead_function_of_ours_is_done_by_powertools_after_its_lease() {
    for language in Language::BOTH {
        let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
        for (began, expected) in [(0, refused(IN_PROGRESS)), (-2 * LEASE, executed("1"))] {
            let ours = shared.ours.after(began);
            let ends = ours.now().plus(Duration::from_millis(LEASE.unsigned_abs()));
            let (idempotency, operation) = (ours.idempotency(None), ours.operation(&settings));
            let (event, begun) = (raw(EVENT), Notify::new());
            let run = idempotency.run(&operation, &event, &ends, async |_| {
                begun.notify_one();
                pending::<Result<Value, Failure>>().await
            });
            tokio::select! {
                ended = run => panic!("{ended:?}"),
                () = begun.notified() => {} // the call is dropped: nothing of it runs any more
            }
            assert_eq!(shared.theirs.call(&settings, Call::new(EVENT, "1")), expected);
            shared.empty();
        }
    }
}

/// The hazard of a mixed fleet: Powertools completes and deletes without a condition.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_powertools_replaces_and_deletes_what_was_completed_here() {
    for language in Language::BOTH {
        for fails in [false, true] {
            let (mut shared, settings) = (Shared::new(language).await, Settings::by("id"));
            shared.theirs.begin(&settings, Call { fails, ..Call::new(EVENT, "\"late\"") });
            busy(shared.ours.run(&settings, EVENT, "\"ours\"").await);
            let later = shared.ours.after(2 * LEASE);
            assert_executed(later.run(&settings, EVENT, "\"ours\"").await, "\"ours\"");
            let ended = shared.theirs.go_on();
            assert_eq!(ended["executed"], 1);
            if fails {
                assert_eq!(shared.items(), Vec::<Value>::new());
            } else {
                assert_replayed(shared.ours.run(&settings, EVENT, "\"ours\"").await, "\"late\"");
            }
        }
    }
}
