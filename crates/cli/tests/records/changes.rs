//! `evict`, `release`, `complete`, `redrive`: they show first, write with `--yes`, and refuse live claims.

use lambda_idempotency_local::{Apply, Fault, Gate};
use serde_json::{Value, json};

use crate::support::{OPERATION, World, claimed, file, keys_of, orders, ran, released};

fn results(document: &Value) -> Vec<&str> {
    let records = document["records"].as_array().unwrap().iter();
    records.map(|record| record["result"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn evict_is_a_dry_run_until_it_is_told_to_act() {
    let world = World::new().await;
    world.put("place#done", "COMPLETED", &json!({}));
    let before = world.item("place#done");
    world.records(&["evict", "place#done"]).code(0).page("evict.txt");
    assert_eq!(world.item("place#done"), before);
    let ran = world.records(&["evict", "place#done", "--yes"]).code(0);
    assert!(ran.out.contains("evicted") && ran.out.contains("60 seconds"), "{}", ran.out);
    assert_eq!(world.item("place#done"), None);
    let again = world.records(&["evict", "place#done", "--yes", "--json"]).code(0).json();
    assert_eq!(results(&again), ["nothing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_claim_is_not_evicted_completed_or_released() {
    let world = World::new().await;
    world.put("place#live", "INPROGRESS", &claimed(600));
    let before = world.item("place#live");
    for verb in ["evict", "complete", "release"] {
        let ran = world.records(&[verb, "place#live", "--yes", "--json"]).code(1).json();
        assert_eq!(results(&ran), ["refused"], "{verb}");
        assert_eq!(world.item("place#live"), before, "{verb}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn release_frees_the_key_and_keeps_the_counts() {
    let world = World::new().await;
    let mut claim = claimed(600);
    claim["failures"] = json!({ "N": "2" });
    world.put("place#dead", "INPROGRESS", &claim);
    let ran = world.records(&["release", "place#dead", "--even-if-held", "--yes"]).code(0);
    assert!(ran.out.contains("released"), "{}", ran.out);
    let item = world.item("place#dead").unwrap();
    assert_eq!(item["in_progress_expiration"]["N"], "1");
    assert_eq!((&item["owner"], &item["failures"]["N"]), (&Value::Null, &json!("2")));
    assert!(item["last_owner"]["S"].is_string() && item["provenance"]["M"].is_object());
    let shown = world.records(&["show", "place#dead", "--json"]).json();
    assert_eq!(shown["records"][0]["state"], "released");
}

#[tokio::test(flavor = "multi_thread")]
async fn complete_records_work_that_was_done_by_hand() {
    let world = World::new().await;
    world.put("place#byhand", "INPROGRESS", &released());
    let arguments = ["place#byhand", "place#new", "--result", "{\"ok\":true}", "--yes", "--json"];
    let ran = world.records(&[&["complete"][..], &arguments].concat()).code(0).json();
    assert_eq!(results(&ran), ["done", "done"]);
    for (key, failures) in [("place#byhand", json!("2")), ("place#new", Value::Null)] {
        let item = world.item(key).unwrap();
        assert_eq!(item["status"]["S"], "COMPLETED");
        assert_eq!(item["data"]["S"], "{\"ok\":true}");
        assert_eq!(item["failures"]["N"], failures);
    }
    let bad = world.records(&["complete", "place#new", "--result", "{"]).code(2);
    assert!(bad.err.contains("not JSON"), "{}", bad.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn redrive_resets_what_failed_and_leaves_what_is_done() {
    let world = World::new().await;
    let keys = keys_of("redrive-keys", &["failed", "done", "lost", "live", "new"]);
    world.put(&keys[0], "FAILED", &json!({}));
    world.put(&keys[1], "COMPLETED", &json!({}));
    world.put(&keys[2], "INPROGRESS", &claimed(-600));
    world.put(&keys[3], "INPROGRESS", &claimed(600));
    let dead = ["failed", "done"].map(|id| {
        let body = json!({ "orderId": id }).to_string();
        json!({ "MessageId": id, "ReceiptHandle": "h", "Body": body, "Attributes": {} })
    });
    let destination = json!({
        "version": "1.0",
        "requestContext": { "condition": "RetriesExhausted" },
        "requestPayload": orders(&["lost", "live", "new"]),
    });
    let files = [
        file("redrive-messages", &json!({ "Messages": dead }).to_string()),
        file("redrive-destination", &destination.to_string()),
    ];
    let arguments = [&["redrive", "--json", &files[0], &files[1]][..], &OPERATION].concat();
    let plan = world.records(&arguments).code(1).json();
    assert_eq!(results(&plan), ["planned", "nothing", "planned", "refused", "nothing"]);
    assert!(keys[..4].iter().all(|key| world.item(key).is_some()), "a dry run");
    let ran = world.records(&[&arguments[..], &["--yes"]].concat()).code(1).json();
    assert_eq!(results(&ran), ["done", "nothing", "done", "refused", "nothing"]);
    let left: Vec<_> = keys.iter().map(|key| world.item(key).is_some()).collect();
    assert_eq!(left, [false, true, false, true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_has_changed_meanwhile_is_not_overwritten() {
    let world = World::new().await;
    world.put("place#raced", "INPROGRESS", &claimed(-600));
    let gate = Gate::new();
    world.db.faults().add(Fault::hold(Apply::Before, &gate).on("DeleteItem").times(1));
    let evicting = world.start(&["evict", "place#raced", "--yes", "--json"]);
    gate.reached().await;
    // A worker takes the key over.
    let mut claim = claimed(600);
    claim["owner"] = json!({ "S": "00000000000000000000000000000002" });
    world.put("place#raced", "INPROGRESS", &claim);
    let taken = world.item("place#raced");
    gate.open();
    let told = ran(evicting).code(1).json();
    assert_eq!(results(&told), ["changed-meanwhile"]);
    assert_eq!(world.item("place#raced"), taken);
}
