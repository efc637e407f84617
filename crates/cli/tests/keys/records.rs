//! Which keys records have, and records with equal keys.

use serde_json::json;

use crate::support::{keys, keys_of, messages};

#[test]
fn the_key_is_the_one_that_the_function_claims() {
    // Keys of scheme 1, and key hashes that `invoke` showed for the example function.
    let event = messages(&[json!({ "id": "o-1" })]);
    let ran = keys_of("golden", &[event], &["{0}", "--operation", "op", "--key", "id", "--json"]);
    let report = ran.json();
    let golden = "op#b998c98c30b1c69205576c101bcd7c8e40faf5162574232a28d4717966bc0471";
    assert_eq!(report["records"][0]["key"], golden);
    assert_eq!(report["records"][0]["canonical"], "\"o-1\"");
    let arguments = ["--operation", "place-order", "--key", "orderId", "--json"];
    let report = keys(["events/sqs-duplicates.json"].into_iter().chain(arguments)).json();
    let hashes = ["c886be2b", "760a40cf", "c886be2b", "96a66670", "96a66670", "08cb5c5e"];
    for (record, hash) in report["records"].as_array().unwrap().iter().zip(hashes) {
        assert!(record["key_hash"].as_str().unwrap().starts_with(hash), "{record}");
    }
}

#[test]
fn without_an_expression_the_limits_of_the_default_are_shown() {
    let ran = keys(["events/sqs-duplicates.json", "events/sns.json"]);
    assert_eq!(ran.code, Some(0));
    for said in [
        "Without a key expression, sqs is known by",
        "redrive",
        "Without a key expression, sns is known by",
        "a publisher that publishes twice",
        "7 records: 6 keys, 1 duplicate",
        "None was given",
    ] {
        assert!(ran.out.contains(said), "{said}: {}", ran.out);
    }
    let named = keys(["events/sns.json", "--key", "orderId", "--operation", "place"]);
    assert!(!named.out.contains("Without a key") && !named.out.contains("None was given"));
}

#[test]
fn records_with_one_key_are_found_in_an_event_and_against_another() {
    let [first, second] = [
        messages(&[
            json!({ "id": 1, "n": 1 }),
            json!({ "id": 2, "n": 1 }),
            json!({ "id": 1, "n": 1 }),
        ]),
        messages(&[json!({ "n": 1, "id": 2 }), json!({ "id": 1, "n": 9 }), json!({ "id": 3 })]),
    ];
    let arguments = ["{0}", "--against", "{1}", "--key", "id", "--json"];
    let report = keys_of("against", &[first.clone(), second.clone()], &arguments).json();
    let shared = report["shared_keys"].as_array().unwrap();
    assert_eq!(shared.len(), 2);
    assert_eq!(
        (&shared[0]["records"], &shared[0]["payloads_differ"]),
        (&json!([1, 3, 5]), &json!(true))
    );
    assert_eq!(
        (&shared[1]["records"], &shared[1]["payloads_differ"]),
        (&json!([2, 4]), &json!(false))
    );
    assert_eq!(report["records"][3]["against"], true);
    assert_eq!(report["summary"]["duplicates"], 3);
    let text = keys_of("against-text", &[first.clone(), second.clone()], &arguments[..5]).out;
    assert!(text.contains("#1 #3 #5") && text.contains("BUT THEIR PAYLOADS DIFFER"), "{text}");
    assert!(text.contains("3 records, to compare with"), "{text}");

    let compared = ["{0}", "--against", "{1}", "--key", "id", "--fingerprint", "n", "--json"];
    let ran = keys_of("mismatch", &[first.clone(), second.clone()], &compared);
    assert_eq!(ran.code, Some(1), "#6 has no fingerprint, so it is refused");
    let report = ran.json();
    assert_eq!(report["shared_keys"][0]["records"], json!([1, 3]));
    assert_eq!(report["shared_keys"][0]["mismatched"], json!([5]));
    assert_eq!(report["summary"]["mismatches"], 1);
    let text = keys_of("mismatch-text", &[first, second], &compared[..7]).out;
    assert!(text.contains("#5") && text.contains("refused as a mismatch"), "{text}");
}

#[test]
fn parts_are_shown_by_name() {
    let event = messages(&[json!({ "tenant": "acme", "order": { "id": 42 } })]);
    let arguments = ["{0}", "--key", "[tenant, order.id]"];
    let text = keys_of("parts", &[event], &arguments).out;
    for said in ["tenant = \"acme\"", "order.id = 42", "[\"acme\",42]"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn a_key_can_be_on_the_record_around_the_payload() {
    let report = keys(["events/sns.json", "--key", "record:Sns.MessageId", "--json"]).json();
    let announced = &report["records"][0];
    assert_eq!(announced["view"], "record");
    assert_eq!(announced["expression"], "Sns.MessageId");
}
