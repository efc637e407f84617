//! Warnings, and events or expressions without a key.

use serde_json::Value;

use crate::{
    ran::fed,
    support::{command, keys},
};

#[test]
fn whole_payloads_and_keys_that_change_get_warnings() {
    let warned = |key: &str| {
        let report = keys(["events/sqs.json", "--key", key, "--json"]).json();
        report["warnings"].as_array().unwrap().iter().map(Value::to_string).collect::<Vec<_>>()
    };
    let whole = warned("@");
    assert!(whole.len() == 1 && whole[0].contains("the whole payload"), "{whole:?}");
    let record = warned("record:@");
    assert!(record.len() == 2 && record[1].contains("changes with each delivery"), "{record:?}");
    let received = warned("record:[messageId, attributes.ApproximateReceiveCount]");
    assert!(received.len() == 1 && received[0].contains("changes with each"), "{received:?}");
    assert_eq!(warned("record:messageId"), Vec::<String>::new());
    let text = keys(["events/sqs.json", "--key", "@"]).out;
    assert!(text.contains("warning") && text.contains("the whole payload"), "{text}");
}

#[test]
fn a_record_without_a_key_is_exit_code_1_with_the_functions_message() {
    let ran = keys(["events/sqs-missing-key.json", "events/sqs-bad-body.json", "--key", "orderId"]);
    assert_eq!(ran.code, Some(1));
    let words = ran.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("no idempotency key under `orderId`: it selects nothing (or null)"));
    assert!(words.contains("the payload is not valid JSON"), "{words}");
    assert!(words.ends_with("6 records: 3 keys, 0 duplicates, 0 mismatches, 3 without a key"));
}

#[test]
fn a_bad_expression_is_exit_code_2_with_a_caret_for_any_event() {
    for event in ["events/sqs.json", "events/sqs-empty-batch.json"] {
        let ran = keys([event, "--key", "order.{"]).refused("at offset 7");
        assert!(ran.err.contains("\n  order.{\n         ^\n"), "{}", ran.err);
        assert_eq!(ran.out, "");
        assert!(!ran.err.contains("because"), "the mistake is named once: {}", ran.err);
    }
}

#[test]
fn an_unreadable_event_is_exit_code_2() {
    keys(["no-such-file.json"]).refused("cannot read no-such-file.json");
    fed(&mut command(["-", "--key", "id"]), "{\n  \"Records\": [}\n")
        .refused("-: the event is not JSON (line 2, column 15)");
}
