//! Logs hold nothing that a key provider or a result store says, unless it is asked for: it is a text of the application.

#[path = "../../../lambda/tests/behaviour/secrecy/capture.rs"]
#[allow(dead_code, reason = "shared with `behaviour`, which uses all of it")]
mod capture;

use lambda_idempotency_core::{
    clock::{BoxFuture, Timestamp},
    memory::MemoryStore,
    store::Verdict,
};
use lambda_idempotency_results::{BoxError, ResultName, ResultStore, Results};

use self::capture::Captured;
use crate::support::{completed, long, put};

struct Refuses;

impl ResultStore for Refuses {
    fn put<'a>(
        &'a self,
        _: &'a ResultName,
        _: Vec<u8>,
        _: Timestamp,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Err("no bucket c4n4ry".into()) })
    }

    fn get<'a>(
        &'a self,
        _: &'a ResultName,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, BoxError>> {
        Box::pin(async { Ok(None) })
    }
}

#[tokio::test]
async fn a_result_that_is_not_stored_is_logged_without_what_the_result_store_said() {
    let captured = Captured::default();
    let _guard = captured.start();
    let store = Results::new(MemoryStore::new()).offload_above(100, Refuses);
    let Verdict::Unknown(error) = put(&store, &completed(long(5000))).await else { panic!() };
    captured.add(&error.to_string());
    captured.assert_silent("a part of a record is not stored|the result store failed");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "no bucket c4n4ry", "the application can look at it");
}

#[test]
fn where_error_messages_are_asked_for_the_log_says_why() {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["secrecy::logged", "--ignored"]).env("IDEMPOTENCY_LOG_ERROR_MESSAGES", "1");
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
#[ignore = "run by the test above, with another environment"]
async fn logged() {
    let captured = Captured::default();
    let _guard = captured.start();
    let store = Results::new(MemoryStore::new()).offload_above(100, Refuses);
    put(&store, &completed(long(5000))).await;
    let text = captured.text();
    assert!(text.contains("error_message=no bucket c4n4ry"), "{text}");
}
