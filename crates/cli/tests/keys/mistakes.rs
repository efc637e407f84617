//! Warnings, and events or expressions without a key.

use serde_json::Value;

use crate::{
    ran::fed,
    support::{command, keys},
};

#[test]
fn a_key_from_the_invocation_needs_its_request_id() {
    let ran = keys(["events/unknown.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("--request-id"), "{}", ran.out);
    let with = |more: &[&str]| {
        let arguments = ["events/unknown.json", "--request-id", "r-1", "--json"];
        let ran = keys(arguments.iter().chain(more));
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        ran.json()["records"][0]["key"].clone()
    };
    assert_ne!(with(&[]), with(&["--tenant", "acme"]));
}

#[test]
fn expressions_that_collide_or_change_get_warnings() {
    let warned = |key: &str| {
        let report = keys(["events/sqs.json", "--key", key, "--json"]).json();
        report["warnings"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>()
    };
    let folding = warned("join('-', [customer, to_string(quantity)])");
    assert_eq!(folding.len(), 2, "{folding:?}");
    assert!(folding[0].contains("`join` at offset 4") && folding[1].contains("`to_string`"));
    let whole = warned("@");
    assert!(whole.len() == 1 && whole[0].contains("the whole payload"), "{whole:?}");
    let record = warned("record:@");
    assert!(record.len() == 2 && record[1].contains("changes with each delivery"), "{record:?}");
    let received = warned("record:[messageId, attributes.ApproximateReceiveCount]");
    assert!(received.len() == 1 && received[0].contains("changes with each"), "{received:?}");
    assert_eq!(warned("record:messageId"), Vec::<String>::new());
    let text = keys(["events/sqs.json", "--key", "to_string(quantity)", "--quiet"]).out;
    assert!(text.contains("warning") && text.contains("`to_string` at offset 9"), "{text}");
}

#[test]
fn a_record_without_a_key_is_exit_code_1_with_the_functions_message() {
    let ran = keys(["events/sqs-missing-key.json", "events/sqs-bad-body.json", "--key", "orderId"]);
    assert_eq!(ran.code, Some(1));
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no idempotency key under `orderId`: it selects nothing (or null)"));
    assert!(words.contains("the payload is not valid JSON"), "{words}");
    assert!(words.ends_with("6 records: 3 keys, 0 duplicates, 0 mismatches, 3 without a key"));
    let policy = ["--missing-key", "run-unprotected"];
    let ran = keys(["events/sqs-missing-key.json", "--key", "orderId"].into_iter().chain(policy));
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("no key; the operation "), "{}", ran.out);
}

#[test]
fn a_bad_expression_is_exit_code_2_with_a_caret_for_any_event() {
    for event in ["events/sqs.json", "events/sqs-empty-batch.json"] {
        let ran = keys([event, "--key", "order.{"]).refused("at offset 7");
        assert!(ran.err.contains("\n  order.{\n         ^\n"), "{}", ran.err);
        assert_eq!(ran.out, "");
        assert!(!ran.err.contains("because"), "the mistake is named once: {}", ran.err);
    }
    // A mistake is found although no event needs the expression.
    keys(["events/sqs.json", "--key", "sns=nope(id)"]).refused("nope");
}

#[test]
fn an_unreadable_event_is_exit_code_2() {
    keys(["no-such-file.json"]).refused("cannot read no-such-file.json");
    fed(&mut command(["-", "--key", "id"]), "{\n  \"Records\": [}\n")
        .refused("-: the event is not JSON (line 2, column 15)");
}
