//! Keys that have to differ: neither side answers for work of the other. These tests fail if the others would pass
//! whatever the keys are.

use lambda_idempotency::RunError;

use crate::{
    Language, Shared,
    ours::assert_executed,
    theirs::{Call, Settings, executed, replayed},
};

const EVENT: &str = r#"{"id": "A-1"}"#;

/// Fails unless work by `theirs` is done again by `ours`, and the other way round.
async fn differ(language: Language, ours: &Settings, theirs: &Settings) {
    let mut shared = Shared::new(language).await;
    assert_eq!(shared.theirs.call(theirs, Call::new(EVENT, "1")), executed("1"));
    assert_executed(shared.ours.run(ours, EVENT, "2").await, "2");
    assert_eq!(shared.items().len(), 2);
    shared.empty();
    assert_executed(shared.ours.run(ours, EVENT, "1").await, "1");
    assert_eq!(shared.theirs.call(theirs, Call::new(EVENT, "2")), executed("2"));
    assert_eq!(shared.items().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Powertools: bash tests/run powertools"]
async fn another_prefix_is_other_work() {
    for language in Language::BOTH {
        let ours = Settings { prefix: Some("refunds"), ..Settings::by("id") };
        differ(language, &ours, &Settings::by("id")).await;
    }
}

/// The default prefix has the name of the function that uses Powertools, not that of ours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Powertools: bash tests/run powertools"]
async fn the_name_of_another_function_is_other_work() {
    for language in Language::BOTH {
        let ours = Settings { prefix: Some("orders-rust.app.process"), ..Settings::by("id") };
        differ(language, &ours, &Settings { prefix: None, ..Settings::by("id") }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Powertools: bash tests/run powertools"]
async fn another_hash_function_is_other_work() {
    for language in Language::BOTH {
        let theirs = Settings { hash: "sha256", ..Settings::by("id") };
        differ(language, &Settings::by("id"), &theirs).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Powertools: bash tests/run powertools"]
async fn another_expression_is_other_work() {
    for language in Language::BOTH {
        differ(language, &Settings::by("[id]"), &Settings::by("id")).await;
    }
}

/// With one prefix: the languages of Powertools do not share keys with each other, and our keys are those of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs Powertools: bash tests/run powertools"]
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
#[ignore = "needs Powertools: bash tests/run powertools"]
async fn numbers_that_typescript_mixes_up_are_refused_here() {
    let (mut shared, settings) = (Shared::new(Language::TypeScript).await, Settings::by("id"));
    let [one, other] = [r#"{"id": 9007199254740992}"#, r#"{"id": 9007199254740993}"#];
    assert_eq!(shared.theirs.call(&settings, Call::new(one, "1")), executed("1"));
    assert_eq!(shared.theirs.call(&settings, Call::new(other, "2")), replayed("1"));
    let refused = shared.ours.run(&settings, other, "2").await;
    assert!(matches!(refused, Err(RunError::Rejected(_))), "{refused:?}");
}
