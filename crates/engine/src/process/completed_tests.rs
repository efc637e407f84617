//! What is remembered, and for how long.

use std::{sync::Arc, time::Duration};

use super::{
    cache::Cache,
    completed::{Completed, OVERHEAD},
};
use lambda_idempotency_core::{
    clock::Timestamp,
    record::{IdempotencyRecord, Owner, Status},
};
use lambda_idempotency_keys::Key;

const NOW: Timestamp = Timestamp::from_secs(1000);

fn key(n: usize) -> Key {
    Key::from_text(format!("op#{n}"))
}

fn record(status: Status, outcome: &str) -> Arc<IdempotencyRecord> {
    let mut record = IdempotencyRecord::new(status, NOW.plus(Duration::from_secs(30)));
    record.result = Some(outcome.into());
    Arc::new(record)
}

fn done() -> Arc<IdempotencyRecord> {
    record(Status::Completed, "1")
}

#[test]
fn only_what_is_final_is_kept() {
    let completed = Completed::new(Cache::new());
    completed.keep(&key(1), &record(Status::InProgress, "1"), NOW);
    completed.keep(&key(2), &record(Status::PermanentlyFailed, "1"), NOW);
    completed.keep(&key(3), &done(), NOW);
    let found: Vec<_> = (1..4).map(|n| completed.get(&key(n), NOW).is_some()).collect();
    assert_eq!(found, [false, false, true]);
}

#[test]
fn it_ends_with_the_age_and_with_the_retention() {
    let age = Duration::from_secs(10);
    let completed = Completed::new(Cache::new().age(age));
    completed.keep(&key(1), &done(), NOW);
    assert!(completed.get(&key(1), NOW.plus(age)).is_some());
    let past = NOW.plus(age + Duration::from_millis(1));
    assert!(completed.get(&key(1), past).is_none());
    assert_eq!(completed.extent(), (0, 0), "and takes no room any more");

    let completed = Completed::new(Cache::new());
    completed.keep(&key(1), &done(), NOW);
    let last = NOW.plus(Duration::from_secs(30));
    assert!(completed.get(&key(1), last).is_some());
    assert!(completed.get(&key(1), last.plus(Duration::from_millis(1))).is_none());
}

#[test]
fn an_entry_from_the_future_has_no_age() {
    let completed = Completed::new(Cache::new());
    completed.keep(&key(1), &done(), NOW);
    assert!(completed.get(&key(1), NOW.minus(Duration::from_millis(1))).is_none());
}

#[test]
fn the_least_recently_used_goes_first() {
    let completed = Completed::new(Cache::new().entries(2));
    for n in [1, 2] {
        completed.keep(&key(n), &done(), NOW);
    }
    assert!(completed.get(&key(1), NOW).is_some());
    completed.keep(&key(3), &done(), NOW);
    let found: Vec<_> = (1..4).map(|n| completed.get(&key(n), NOW).is_some()).collect();
    assert_eq!(found, [true, false, true]);
}

#[test]
fn bytes_are_bounded_and_counted_once() {
    let completed = Completed::new(Cache::new().bytes(10 * (OVERHEAD + 100)));
    let large = record(Status::Completed, &"x".repeat(90));
    for n in 0..100 {
        completed.keep(&key(n % 20), &large, NOW);
        let (entries, bytes) = completed.extent();
        assert!(bytes <= 10 * (OVERHEAD + 100) && entries <= 10, "{entries}, {bytes}");
    }
    assert_eq!(completed.extent().0, 10);
    let huge = record(Status::Completed, &"x".repeat(10 * (OVERHEAD + 100)));
    completed.keep(&key(99), &huge, NOW);
    assert_eq!(completed.extent().0, 10, "a record that cannot fit displaces no other");
}

#[test]
fn as_many_bytes_are_kept_as_allowed() {
    let completed = Completed::new(Cache::new().bytes(2 * (OVERHEAD + 5)));
    for n in [1, 2, 3] {
        completed.keep(&key(n), &done(), NOW);
    }
    assert_eq!(completed.extent(), (2, 2 * (OVERHEAD + 5)), "`op#1` and `1` are five bytes");
}

#[test]
fn off_is_off() {
    let completed = Completed::new(Cache::off());
    completed.keep(&key(1), &done(), NOW);
    assert!(completed.get(&key(1), NOW).is_none());
}

#[test]
fn a_record_whose_result_could_not_be_read_is_not_kept() {
    let completed = Completed::new(Cache::new());
    let mut unread = done();
    let record = Arc::make_mut(&mut unread);
    record.unread_result = record.result.take();
    completed.keep(&key(1), &unread, NOW);
    assert!(completed.get(&key(1), NOW).is_none());
}

/// It may be as long as the text, and is not counted.
#[test]
fn what_a_store_notes_with_a_result_is_not_kept() {
    let completed = Completed::new(Cache::new());
    let noted = done();
    noted.result.as_ref().unwrap().note("encrypted");
    completed.keep(&key(1), &noted, NOW);
    let kept = completed.get(&key(1), NOW).unwrap();
    assert_eq!(kept, noted);
    assert!(!kept.result.as_ref().unwrap().is_noted());
}

#[test]
fn a_freed_record_is_not_kept_again_and_its_successor_is() {
    let completed = Completed::new(Cache::new());
    let (first, second) = (done(), record_of(2));
    completed.keep(&key(1), &first, NOW);
    completed.free(&key(1), &first);
    assert!(completed.get(&key(1), NOW).is_none() && completed.extent() == (0, 0));
    completed.keep(&key(1), &first, NOW);
    assert!(completed.get(&key(1), NOW).is_none(), "an invocation had read it before");
    completed.keep(&key(1), &second, NOW);
    assert!(completed.get(&key(1), NOW).is_some());
}

fn record_of(owner: u128) -> Arc<IdempotencyRecord> {
    let mut record = IdempotencyRecord::clone(&done());
    record.owner = Some(Owner::from_bits(owner));
    Arc::new(record)
}
