//! Which keys records have, and records with equal keys.

use serde_json::json;

use crate::{
    ran::Ran,
    support::{command, keys, keys_of, messages},
};

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
fn powertools_keys_are_those_of_powertools() {
    let event = messages(&[json!({ "order_id": "A-1", "ts": 1 })]);
    let arguments = ["{0}", "--key", "order_id", "--powertools", "powertools-python"];
    let prefix = ["--powertools-prefix", "orders-fn.app.process"];
    let ran = keys_of("powertools", &[event], &[&arguments[..], &prefix].concat()).code(0);
    assert!(ran.out.contains("orders-fn.app.process#35e4083ba11d7d06184c72e37b6428b7"));
    assert!(!ran.out.contains("--operation"), "no key has an operation: {}", ran.out);
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
    let arguments = ["{0}", "--key", "[tenant, order.id, coupon]", "--optional", "coupon"];
    let text = keys_of("parts", std::slice::from_ref(&event), &arguments).out;
    for said in ["tenant = \"acme\"", "order.id = 42", "coupon = null", "[\"acme\",42,~]"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let readable = ["{0}", "--key", "[tenant, order.id]", "--readable", "--operation", "place"];
    let text = keys_of("readable", &[event], &readable).out;
    assert!(text.contains("place#~/acme/+42"), "{text}");
}

#[test]
fn each_source_can_have_its_own_key() {
    let arguments = "events/sqs.json events/sns.json --key-from-env sqs=TEST_SQS_KEY \
         --key sns=record:Sns.MessageId --operation sqs=queued --operation announced --json";
    let mut command = command(arguments.split_whitespace());
    let report = Ran::from(command.env("TEST_SQS_KEY", "orderId")).json();
    let [queued, announced] = [0, 1].map(|at| report["records"][at].clone());
    assert_eq!((&queued["view"], &queued["canonical"]), (&json!("payload"), &json!("\"o-1001\"")));
    assert!(queued["key"].as_str().unwrap().starts_with("queued#"));
    assert_eq!(
        (&announced["view"], &announced["expression"]),
        (&json!("record"), &json!("Sns.MessageId"))
    );
    assert!(announced["key"].as_str().unwrap().starts_with("announced#"));

    keys(["events/sqs.json", "--key-from-env", "TEST_UNSET_KEY"])
        .refused("TEST_UNSET_KEY, which is not set");
    keys(["events/sqs.json", "--key", "squs=orderId"]).refused("there is no source `squs`");
}

#[test]
fn envelopes_are_removed() {
    let event = "crates/lambda/tests/events/snsSqsEvent.json";
    let text = keys([event, "--key", "message", "--envelope", "sns"]).out;
    assert!(text.contains("the payload, out of sns, by message"), "{text}");
    assert!(
        text.contains("message = \"hello world\"") && text.contains("sns | arn:aws:sns:"),
        "{text}"
    );
    let wrong = keys(["events/sqs.json", "--envelope", "sns"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.out.contains("the payload is not an SNS notification"), "{}", wrong.out);
}

#[test]
fn a_secret_comes_from_the_environment() {
    let with = |secret: Option<&str>| {
        let mut command = command(["events/sqs.json", "--secret-from-env", "TEST_SECRET"]);
        command.env_remove("TEST_SECRET").envs(secret.map(|secret| ("TEST_SECRET", secret)));
        Ran::from(&mut command)
    };
    let ran = with(Some("a secret of 16 bytes and more"));
    assert!(ran.out.contains("operation#hmac-"), "{}", ran.out);
    assert!(!ran.out.contains("16 bytes"), "the secret is not shown");
    for (secret, problem) in [(None, "TEST_SECRET"), (Some("short"), "has 5 bytes")] {
        with(secret).refused(problem);
    }
}
