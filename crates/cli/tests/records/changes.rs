//! `free`, `release`, `redrive`: they show first, write with `--yes`, and refuse live claims.

use lambda_idempotency_local::{Apply, Fault, Gate};
use serde_json::{Value, json};

use crate::{
    support::{
        OPERATION, World, claimed, file, keys_of, millis_from_now, orders, page, ran, released,
    },
    verbs::every_verb,
};

fn results(document: &Value) -> Vec<&str> {
    let records = document["records"].as_array().unwrap().iter();
    records.map(|record| record["result"].as_str().unwrap()).collect()
}

/// The keys of Powertools have a prefix, and its claims have no owner.
#[tokio::test(flavor = "multi_thread")]
async fn every_verb_works_by_key_and_by_event_on_a_table_and_on_one_of_powertools() {
    let powertools = ["--powertools", "powertools-python", "--powertools-prefix", "f.app.place"];
    let powertools = [&powertools[..], &["--key", "orderId"]].concat();
    let theirs = json!({ "in_progress_expiration": millis_from_now(600) });
    for (store, options, claim) in
        [("dynamodb", &OPERATION[..], claimed(600)), ("powertools", &powertools, theirs)]
    {
        let world = World::new().await;
        let records = |code: i32, arguments: &[&str]| {
            let ran = world.records(arguments).code(code);
            if ran.out.is_empty() { Value::Null } else { ran.json() }
        };
        every_verb(store, options, records, async |key| world.put(key, "INPROGRESS", &claim)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn free_is_a_dry_run_until_it_is_told_to_act() {
    let world = World::new().await;
    world.put("place#done", "COMPLETED", &json!({}));
    let before = world.item("place#done");
    page(&world.records(&["free", "place#done"]).code(0), "free.txt");
    assert_eq!(world.item("place#done"), before);
    let ran = world.records(&["free", "place#done", "--yes"]).code(0);
    assert!(ran.out.contains("freed") && ran.out.contains("60 seconds"), "{}", ran.out);
    assert_eq!(world.item("place#done"), None);
    let again = world.records(&["free", "place#done", "--yes", "--json"]).code(0).json();
    assert_eq!(results(&again), ["nothing"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn release_frees_the_key_and_counts_a_lost_attempt() {
    let world = World::new().await;
    let mut claim = claimed(600);
    claim["failed_attempts"] = json!({ "N": "2" });
    world.put("place#dead", "INPROGRESS", &claim);
    let ran = world.records(&["release", "place#dead", "--even-if-held", "--yes"]).code(0);
    assert!(ran.out.contains("released"), "{}", ran.out);
    let item = world.item("place#dead").unwrap();
    assert_eq!(item["in_progress_expiration"]["N"], "1");
    assert_eq!((&item["owner"], &item["failed_attempts"]["N"]), (&Value::Null, &json!("2")));
    assert_eq!(
        (&item["lost_attempts"]["N"], &item["consecutive_losses"]["N"]),
        (&json!("1"), &json!("1"))
    );
    assert!(item["last_owner"]["S"].is_string() && item["provenance"]["M"].is_object());
    let shown = world.records(&["show", "place#dead", "--json"]).json();
    assert_eq!(shown["records"][0]["state"], "released");
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
    assert_eq!(left, [false, true, true, true, false]);
    let lost = world.item(&keys[2]).unwrap();
    assert_eq!((&lost["lost_attempts"]["N"], &lost["owner"]), (&json!("1"), &Value::Null));
}

/// The recipe of the guide in a shell, with an `aws` that has three pages of messages.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_a_redrive_resets_more_messages_than_one_call_receives() {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};
    let world = World::new().await;
    let ids: Vec<_> = (0..23).map(|number| format!("o-{number}")).collect();
    let keys = keys_of("recipe-keys", &ids.iter().map(String::as_str).collect::<Vec<_>>());
    for key in &keys {
        world.put(key, "FAILED", &json!({}));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("records-recipe");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for (number, ids) in ids.chunks(10).enumerate() {
        let message = |id: &String| {
            let body = json!({ "orderId": id }).to_string();
            json!({ "MessageId": id, "ReceiptHandle": "h", "Body": body, "Attributes": {} })
        };
        let page = json!({ "Messages": ids.iter().map(message).collect::<Vec<_>>() });
        fs::write(folder.join(format!("{number}.queue")), page.to_string()).unwrap();
    }
    let aws = "#!/bin/sh\nfor page in *.queue; do [ -e \"$page\" ] && cat \"$page\" && rm \"$page\"; break; done\ntrue\n";
    fs::write(folder.join("aws"), aws).unwrap();
    fs::set_permissions(folder.join("aws"), fs::Permissions::from_mode(0o755)).unwrap();
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lambda/src/guide/operating.md");
    let guide = fs::read_to_string(guide).unwrap();
    let recipe = guide.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let recipe = &recipe.replace("--operation place-order", "--operation place");
    assert!(recipe.contains("records redrive"), "{recipe}");
    let command = Path::new(env!("CARGO_BIN_EXE_lambda-idempotency"));
    let path = [folder.as_path(), command.parent().unwrap()].map(|path| path.display().to_string());
    let path = format!("{}:{}", path.join(":"), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-ec", recipe]).current_dir(&folder).env("PATH", path);
    let output = shell.envs(world.environment()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(keys.iter().all(|key| world.item(key).is_none()), "a failure is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_forgets_failures_and_not_lost_attempts() {
    let world = World::new().await;
    let keys = keys_of("redrive-lost-keys", &["failed", "released"]);
    let losses = json!({ "lost_attempts": { "N": "2" }, "fence": { "N": "77" }, "failed_attempts": { "N": "3" } });
    world.put(&keys[0], "FAILED", &losses);
    let mut given_up = released();
    given_up["lost_attempts"] = json!({ "N": "1" });
    given_up["consecutive_losses"] = json!({ "N": "1" });
    world.put(&keys[1], "INPROGRESS", &given_up);
    let event = file("redrive-lost", &orders(&["failed", "released"]).to_string());
    let ran = world.records(&[&["redrive", &event, "--yes"][..], &OPERATION].concat()).code(0);
    assert!(ran.out.contains("told of lost attempts (2)"), "{}", ran.out);
    let item = world.item(&keys[0]).unwrap();
    assert_eq!(item["status"]["S"], "INPROGRESS");
    assert_eq!((&item["lost_attempts"]["N"], &item["fence"]["N"]), (&json!("2"), &json!("77")));
    let item = world.item(&keys[1]).unwrap();
    assert_eq!(
        (&item["lost_attempts"]["N"], &item["consecutive_losses"]["N"]),
        (&json!("1"), &json!("1"))
    );
    for key in &keys {
        assert_eq!(world.item(key).unwrap()["failed_attempts"], Value::Null);
        let shown = world.records(&["show", key, "--json"]).json();
        assert_eq!(shown["records"][0]["state"], "released");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_key_does_not_keep_the_others_from_a_redrive() {
    let world = World::new().await;
    let keys = keys_of("redrive-keyless-keys", &["a", "b"]);
    world.put(&keys[0], "FAILED", &json!({}));
    world.put(&keys[1], "FAILED", &json!({}));
    let bodies = [
        json!({ "orderId": "a" }).to_string(),
        "not json".to_owned(),
        json!({ "orderId": "b" }).to_string(),
    ];
    let dead = bodies.map(|body| json!({ "MessageId": "m", "ReceiptHandle": "h", "Body": body }));
    let dead = file("redrive-keyless", &json!({ "Messages": dead }).to_string());
    let arguments = [&["redrive", &dead, "--yes", "--json"][..], &OPERATION].concat();
    let ran = world.records(&arguments).code(1).json();
    assert_eq!(results(&ran), ["done", "done", "refused"]);
    assert_eq!(ran["records"][2]["record"], "sqs record m");
    assert!(keys.iter().all(|key| world.item(key).is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_says_that_a_message_known_by_its_id_is_done_again() {
    let world = World::new().await;
    let attributes =
        json!({ "DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:111122223333:orders" });
    let dead =
        json!({ "MessageId": "m-o", "ReceiptHandle": "h", "Body": "{}", "Attributes": attributes });
    let dead = file("redrive-by-id", &json!({ "Messages": [dead] }).to_string());
    let arguments = ["redrive", &dead, "--operation", "place", "--json"];
    let new = world.records(&arguments).code(0).json();
    world.put(new["records"][0]["key"].as_str().unwrap(), "COMPLETED", &json!({}));
    let done = world.records(&arguments).code(1).json();
    assert_eq!(results(&done), ["refused"]);
    assert!(done["records"][0]["message"].as_str().unwrap().contains("a new id"), "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_is_of_the_functions_subscription_if_that_is_said() {
    let world = World::new().await;
    let notification = json!({
        "Type": "Notification", "MessageId": "n-1", "Message": "{\"orderId\":\"o-1\"}",
        "TopicArn": "arn:aws:sns:eu-west-1:111122223333:orders",
    });
    let dead = json!({ "Messages": [{
        "MessageId": "m-1", "Body": notification.to_string(), "Attributes": { "SenderId": "s" },
    }] });
    let dead = file("redrive-notification", &dead.to_string());
    let redrive = [&["redrive", &dead, "--json"][..], &OPERATION].concat();
    let of_queue = world.records(&redrive);
    assert!(of_queue.err.contains("--sns-subscription"), "{}", of_queue.err);
    let of_function = world.records(&[&redrive[..], &["--sns-subscription"]].concat()).code(0);
    assert!(!of_function.err.contains("note:"), "{}", of_function.err);
    let key = &of_function.json()["records"][0]["key"];
    assert_eq!(key.as_str().unwrap(), keys_of("redrive-notification-keys", &["o-1"])[0]);
    let enveloped = world.records(&[&redrive[..], &["--envelope", "sns"]].concat()).code(0);
    assert!(!enveloped.err.contains("note:"), "{}", enveloped.err);
    assert_eq!(&enveloped.json()["records"][0]["key"], key, "the same work, however it comes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redrive_leaves_the_record_of_other_work() {
    let world = World::new().await;
    let keys = keys_of("redrive-other-keys", &["o"]);
    world.put(&keys[0], "FAILED", &json!({ "validation": { "S": "of another payload" } }));
    let event = file("redrive-other", &orders(&["o"]).to_string());
    let arguments =
        [&["redrive", &event, "--yes", "--json", "--fingerprint", "orderId"][..], &OPERATION]
            .concat();
    let ran = world.records(&arguments).code(1).json();
    assert_eq!(results(&ran), ["refused"]);
    assert!(world.item(&keys[0]).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_is_not_a_record_is_refused_and_stops_no_other() {
    let world = World::new().await;
    world.put("place#odd", "EXPIRED", &json!({}));
    world.put("place#done", "COMPLETED", &json!({}));
    for verb in ["release", "free"] {
        let ran = world.records(&[verb, "place#odd", "place#done", "--yes", "--json"]).json();
        assert_eq!(results(&ran)[0], "refused", "{verb}");
        assert_eq!(ran["records"][0]["state"], "unreadable", "{verb}");
    }
    assert!(world.item("place#odd").is_some() && world.item("place#done").is_none());
}

/// The keys would be those of an operation that nobody has.
#[tokio::test(flavor = "multi_thread")]
async fn the_records_of_an_event_are_not_looked_for_without_the_name_of_their_operation() {
    let world = World::new().await;
    let event = file("unnamed", &orders(&["o"]).to_string());
    for command in [
        &["show", "--event", &event][..],
        &["free", "--event", &event],
        &["release", "--event", &event],
        &["redrive", &event],
    ] {
        let ran = world.records(&[command, &["--key", "orderId"]].concat()).code(2);
        assert!(ran.err.contains("--operation"), "{command:?}: {}", ran.err);
    }
    assert_eq!(world.records(&["list", "--json"]).code(0).json()["read"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_was_lost_is_recognised() {
    let world = World::new().await;
    world.put("place#done", "COMPLETED", &json!({}));
    world.put("place#dead", "INPROGRESS", &claimed(-600));
    for operation in ["DeleteItem", "PutItem", "UpdateItem"] {
        world.db.faults().add(Fault::hang_up(Apply::After).on(operation).times(1));
    }
    let freed = world.records(&["free", "place#done", "--yes", "--json"]).code(0).json();
    let released = world.records(&["release", "place#dead", "--yes", "--json"]).code(0).json();
    assert_eq!((results(&freed), results(&released)), (vec!["done"], vec!["done"]));
    assert_eq!(world.item("place#done"), None);
    assert_eq!(world.item("place#dead").unwrap()["in_progress_expiration"]["N"], "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_has_changed_meanwhile_is_not_overwritten() {
    let world = World::new().await;
    world.put("place#raced", "INPROGRESS", &claimed(-600));
    let gate = Gate::new();
    world.db.faults().add(Fault::hold(Apply::Before, &gate).on("DeleteItem").times(1));
    let freeing = world.start(&["free", "place#raced", "--yes", "--json"]);
    gate.reached().await;
    // A worker takes the key over.
    let mut claim = claimed(600);
    claim["owner"] = json!({ "S": "00000000000000000000000000000002" });
    world.put("place#raced", "INPROGRESS", &claim);
    let taken = world.item("place#raced");
    gate.open();
    let output = ran(freeing).code(1).json();
    assert_eq!(results(&output), ["changed-meanwhile"]);
    assert_eq!(world.item("place#raced"), taken);
}
