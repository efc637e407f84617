//! Payload validation: the same key with another payload is refused on either side.

use lambda_idempotency::RunError;

use crate::{
    Language, Shared,
    ours::{assert_executed, assert_replayed},
    theirs::{Call, Settings, executed, refused, replayed},
};

/// What is validated, an event, and an event with another value there.
const CASES: [[&str; 3]; 4] = [
    ["amount", r#"{"id": 1, "amount": 12.50}"#, r#"{"id": 1, "amount": 12.51}"#],
    [
        "[to, amount]",
        r#"{"id": 1, "to": "é", "amount": 1}"#,
        r#"{"id": 1, "to": "è", "amount": 1}"#,
    ],
    [
        "order.lines",
        r#"{"id": 1, "order": {"lines": [{"n": 1}]}}"#,
        r#"{"id": 1, "order": {"lines": [{"n": 2}]}}"#,
    ],
    ["@", r#"{"id": 1}"#, r#"{"id": 1, "note": "x"}"#],
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_payload_is_refused_on_either_side() {
    for language in Language::BOTH {
        let mut shared = Shared::new(language).await;
        for [validation, event, other] in CASES {
            println!("{language:?}: {validation}");
            let settings = Settings { validation: Some(validation), ..Settings::by("id") };
            assert_eq!(shared.theirs.call(&settings, Call::new(event, "1")), executed("1"));
            assert_replayed(shared.ours.run(&settings, event, "2").await, "1");
            let answer = shared.ours.run(&settings, other, "2").await;
            assert!(matches!(answer, Err(RunError::Mismatch)), "{answer:?}");
            shared.empty();
            assert_executed(shared.ours.run(&settings, event, "1").await, "1");
            assert_eq!(shared.theirs.call(&settings, Call::new(event, "2")), replayed("1"));
            let answer = shared.theirs.call(&settings, Call::new(other, "2"));
            assert_eq!(answer, refused("IdempotencyValidationError"));
            shared.empty();
        }
    }
}
