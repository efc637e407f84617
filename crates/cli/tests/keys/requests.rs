//! Keys of HTTP requests.

use serde_json::json;

use crate::support::{keys_of, request};

#[test]
fn requests_have_the_key_that_their_client_chose() {
    let events = [request("\"k-1\"", "EUR 5.00"), request("k-1", "EUR 6.00")];
    let ran = keys_of("http", &events, &["{0}", "{1}", "--json"]);
    let report = ran.json();
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert_eq!(report["records"][0]["source"], "http");
    assert_eq!(report["records"][0]["identity"][2], "k-1");
    assert_eq!(report["shared_keys"][0]["mismatched"], json!([2]), "the second request differs");
    assert!(!ran.out.contains("s3cr3t"), "credentials are not shown");
    let mut without = request("", "");
    without["headers"].as_object_mut().unwrap().remove("idempotency-key");
    let ran = keys_of("http-none", &[without], &["{0}"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains("400") && ran.out.contains("idempotency-key"), "{}", ran.out);
}

#[test]
fn requests_without_a_caller_have_a_key_only_if_all_callers_are_one() {
    let mut anonymous = request("k-1", "");
    anonymous["headers"].as_object_mut().unwrap().remove("authorization");
    let ran = keys_of("http-nobody", &[anonymous.clone()], &["{0}"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(".all_callers_are_one()"), "{}", ran.out);
    let ran = keys_of("http-nobody", &[anonymous], &["{0}", "--all-callers-are-one"]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
}

#[test]
fn each_path_of_requests_has_its_own_key_on_request() {
    let item = |path: &str| {
        let mut event = request("k-1", r#"{"sku":"s-1"}"#);
        event["path"] = json!(path);
        event
    };
    let carts = [item("/carts/1/items"), item("/carts/2/items")];
    for (more, distinct) in [(&[][..], false), (&["--one-key-for-each-path"][..], true)] {
        let arguments = [&["{0}", "{1}", "--json", "--key", "sku"][..], more].concat();
        let ran = keys_of("http-paths", &carts, &arguments);
        let report = ran.json();
        let keys = [0, 1].map(|at| report["records"][at]["key"].as_str().unwrap());
        assert_eq!(keys[0] != keys[1], distinct, "{more:?}: {}", ran.err);
    }
}
