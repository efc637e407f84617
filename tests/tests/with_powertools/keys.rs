//! Keys that have to differ: neither side answers for work of the other. These tests fail if the others would pass
//! whatever the keys are.

use lambda_idempotency::RunError;

use crate::{
    Language, Shared,
    ours::assert_executed,
    theirs::{Call, Settings, executed, replayed},
};

const EVENT: &str = r#"{"id": "A-1"}"#;

/// Work by one side is done again by the other if its settings are not the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_settings_are_other_work() {
    let by = || Settings::by("id");
    for (ours, theirs) in [
        (Settings { prefix: Some("refunds"), ..by() }, by()),
        // The default prefix has the name of the function that uses Powertools, not that of ours.
        (
            Settings { prefix: Some("orders-rust.app.process"), ..by() },
            Settings { prefix: None, ..by() },
        ),
        (by(), Settings { hash: "sha256", ..by() }),
        (Settings::by("[id]"), by()),
    ] {
        for language in Language::BOTH {
            let mut shared = Shared::new(language).await;
            assert_eq!(shared.theirs.call(&theirs, Call::new(EVENT, "1")), executed("1"));
            assert_executed(shared.ours.run(&ours, EVENT, "2").await, "2");
            assert_eq!(shared.items().len(), 2);
            shared.empty();
            assert_executed(shared.ours.run(&ours, EVENT, "1").await, "1");
            assert_eq!(shared.theirs.call(&theirs, Call::new(EVENT, "2")), executed("2"));
            assert_eq!(shared.items().len(), 2);
        }
    }
}

/// With one prefix: the languages of Powertools do not share keys with each other, and our keys are those of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_language_is_other_work() {
    let settings = Settings::by("id");
    let mut python = Shared::new(Language::Python).await;
    let mut typescript = Shared::with(Language::TypeScript, python.dynamodb.clone()).await;
    assert_eq!(python.theirs.call(&settings, Call::new(EVENT, "1")), executed("1"));
    assert_executed(typescript.ours.run(&settings, EVENT, "2").await, "2");
    assert_eq!(python.items().len(), 2);
    python.empty();
    assert_eq!(typescript.theirs.call(&settings, Call::new(EVENT, "1")), executed("1"));
    assert_executed(python.ours.run(&settings, EVENT, "2").await, "2");
    assert_eq!(python.items().len(), 2);
    python.empty();
    assert_eq!(python.theirs.call(&settings, Call::new(EVENT, "1")), executed("1"));
    assert_eq!(typescript.theirs.call(&settings, Call::new(EVENT, "2")), executed("2"));
}

/// TypeScript rounds both to the same number, and answers for the other. Here they are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_that_typescript_mixes_up_are_refused_here() {
    let (mut shared, settings) = (Shared::new(Language::TypeScript).await, Settings::by("id"));
    let [one, other] = [r#"{"id": 9007199254740992}"#, r#"{"id": 9007199254740993}"#];
    assert_eq!(shared.theirs.call(&settings, Call::new(one, "1")), executed("1"));
    assert_eq!(shared.theirs.call(&settings, Call::new(other, "2")), replayed("1"));
    let refused = shared.ours.run(&settings, other, "2").await;
    assert!(matches!(refused, Err(RunError::Rejected(_))), "{refused:?}");
}
