//! `list`, `show`, `stats`, `watch`: what they show, and what they leave out.

use lambda_idempotency_local::{Apply, Fault, Gate};
use serde_json::json;

use crate::support::{
    OPERATION, World, claimed, file, keys_of, orders, provenance, ran, released, seconds_from_now,
};

/// A record in each state.
async fn one_of_each() -> World {
    let world = World::new().await;
    world.put("place#a", "INPROGRESS", &claimed(630));
    world.put("place#b", "INPROGRESS", &claimed(-630));
    world.put("place#c", "INPROGRESS", &released());
    world.put("place#d", "COMPLETED", &json!({ "data": { "S": "{\"s3cr3t\":1}" } }));
    world.put(
        "refund#e",
        "FAILED",
        &json!({
            "failures": { "N": "3" }, "error": { "S": "payments::Declined" },
            "application": { "S": "orders" }, "provenance": provenance(),
        }),
    );
    let over = json!({ "expiration": { "N": seconds_from_now(-86_430).to_string() } });
    world.put("refund#f", "COMPLETED", &over);
    world.db.put_item("idempotency", &json!({ "id": { "S": "settings" } })).unwrap();
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_says_what_each_key_waits_for_and_where_its_logs_are() {
    let world = one_of_each().await;
    let ran = world.records(&["list"]).code(0);
    assert!(ran.err.contains("reading at most 1000"), "{}", ran.err);
    assert!(!ran.out.contains("s3cr3t"));
    ran.page("list.txt");
    let ran = world.records(&["list", "--state", "completed", "--show-result"]).code(0);
    assert!(ran.out.contains("s3cr3t") && ran.out.contains("1 of 7 items"), "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_filtered_limited_and_goes_on_at_its_cursor() {
    let world = one_of_each().await;
    let keys = |arguments: &[&str]| {
        let ran = world.records(&[&["list", "--json"], arguments].concat()).code(0).json();
        let records = ran["records"].as_array().unwrap().iter();
        let mut keys: Vec<_> =
            records.map(|record| record["key"].as_str().unwrap().to_owned()).collect();
        keys.sort_unstable();
        (keys, ran["read"].as_u64().unwrap(), ran["next"].as_str().map(str::to_owned))
    };
    let (failed, read, next) = keys(&["--state", "failed", "--state", "lapsed"]);
    assert_eq!((failed, read, next), (vec!["place#b".into(), "refund#e".into()], 7, None));
    assert_eq!(keys(&["--operation", "refund"]).0, ["refund#e", "refund#f"]);
    let (first, read, next) = keys(&["--limit", "4"]);
    let (rest, _, end) = keys(&["--limit", "4", "--cursor", &next.unwrap()]);
    assert_eq!((first.len(), read, rest.len(), end), (4, 4, 3, None));
    assert!(first.iter().all(|key| !rest.contains(key)));
}

#[tokio::test(flavor = "multi_thread")]
async fn show_finds_the_records_of_an_event() {
    let world = World::new().await;
    let keys = keys_of("show-keys", &["o-1", "o-2"]);
    world.put(&keys[0], "COMPLETED", &json!({ "data": { "S": "\"s3cr3t\"" } }));
    let event = file("show", &orders(&["o-1", "o-2"]).to_string());
    let arguments = [&["show", "--event", &event][..], &OPERATION].concat();
    let ran = world.records(&arguments).code(1);
    assert!(!ran.out.contains("s3cr3t"));
    ran.page("show.txt");
    let ran = world.records(&["show", "--json", &keys[0]]).code(0).json();
    assert_eq!(ran["records"][0]["state"], "completed");
    assert_eq!(ran["records"][0]["result_bytes"], 8);
    assert_eq!(ran["records"][0]["result"], json!(null));
    let ran = world.records(&["show", "--json", "--show-result", &keys[0]]).json();
    assert_eq!(ran["records"][0]["result"], "\"s3cr3t\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_count_operations_states_and_ages() {
    let world = one_of_each().await;
    world.records(&["stats"]).code(0).page("stats.txt");
    let ran = world.records(&["stats", "--json"]).code(0).json();
    assert_eq!(ran["read"], 7);
    assert_eq!(ran["claimed_unknown"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_tells_what_has_changed() {
    let world = World::new().await;
    world.put("place#a", "INPROGRESS", &claimed(600));
    let gate = Gate::new();
    world.db.faults().add(Fault::hold(Apply::Before, &gate).on("Scan").skip(1).times(1));
    let watching = world.start(&["watch", "--json", "--every", "1ms", "--rounds", "2"]);
    gate.reached().await;
    world.put("place#a", "COMPLETED", &json!({}));
    gate.open();
    let told = ran(watching).code(0).json();
    assert_eq!((&told["was"], &told["is"]), (&json!("in-progress"), &json!("completed")));
}
