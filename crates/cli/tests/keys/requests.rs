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
fn a_request_without_a_caller_has_no_key() {
    let mut anonymous = request("k-1", "");
    anonymous["headers"].as_object_mut().unwrap().remove("authorization");
    let ran = keys_of("http-nobody", &[anonymous], &["{0}"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(".all_callers_are_one()"), "{}", ran.out);
}
