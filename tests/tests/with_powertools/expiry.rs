//! A completion counts on both sides until it expires, and on neither afterwards.

use crate::{
    Language, Shared,
    ours::{assert_executed, assert_replayed},
    theirs::{Call, Settings, executed, replayed},
};

const EVENT: &str = r#"{"id": "A-1"}"#;
const EXPIRES: u64 = 3600;
/// In milliseconds. Before `EXPIRES`, by more than Powertools rounds; and after it, by more than clocks may differ.
const BEFORE: i64 = 3_590_000;
const AFTER: i64 = 3_603_000;

fn settings() -> Settings {
    Settings { expires: EXPIRES, ..Settings::by("id") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_side_completed_is_done_again_by_the_other_when_it_has_expired() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        assert_eq!(shared.theirs.call(&settings(), Call::new(EVENT, "1")), executed("1"));
        assert_replayed(shared.ours.after(BEFORE).run(&settings(), EVENT, "2").await, "1");
        assert_executed(shared.ours.after(AFTER).run(&settings(), EVENT, "2").await, "2");
        shared.empty();
        assert_executed(shared.ours.after(-BEFORE).run(&settings(), EVENT, "1").await, "1");
        assert_eq!(shared.theirs.call(&settings(), Call::new(EVENT, "2")), replayed("1"));
        shared.empty();
        assert_executed(shared.ours.after(-AFTER).run(&settings(), EVENT, "1").await, "1");
        assert_eq!(shared.theirs.call(&settings(), Call::new(EVENT, "2")), executed("2"));
    }
}
