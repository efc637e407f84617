//! `list`, `show`: what they show, and what they leave out.

use lambda_idempotency_local::{Apply, Fault, Table};
use serde_json::json;

use crate::support::{
    OPERATION, TABLE, World, answering, claimed, file, keys_of, orders, page, provenance, ran,
    records_at, released, seconds_from_now,
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
            "failed_attempts": { "N": "3" }, "error": { "S": "payments::Declined" },
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
    page(&ran, "list.txt");
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
    page(&ran, "show.txt");
    let ran = world.records(&["show", "--json", &keys[0]]).code(0).json();
    assert_eq!(ran["records"][0]["state"], "completed");
    assert_eq!(ran["records"][0]["result_bytes"], 8);
    assert_eq!(ran["records"][0]["result"], json!(null));
    let ran = world.records(&["show", "--json", "--show-result", &keys[0]]).json();
    assert_eq!(ran["records"][0]["result"], "\"s3cr3t\"");
}

#[tokio::test(flavor = "multi_thread")]
async fn show_names_the_steps_that_are_finished_and_leaves_out_their_results() {
    let world = World::new().await;
    let with = |steps: &str| {
        let mut claim = released();
        claim["steps"] = json!({ "S": steps });
        claim
    };
    world.put("place#a", "INPROGRESS", &with(r#"{"charge":"s3cr3t","ship":null}"#));
    world.put("place#b", "INPROGRESS", &with("\"lambda-idempotency:1 aes-256-gcm=k AAAA\""));
    let shown = world.records(&["show", "place#a", "place#b"]).code(0).out;
    assert!(shown.contains("no attempt repeats: charge, ship\n"), "{shown}");
    assert!(shown.contains("finished steps of 41 bytes, which are encrypted"), "{shown}");
    assert!(!shown.contains("s3cr3t"), "{shown}");
    let steps = |more: &[&str]| {
        let ran = world.records(&[&["show", "place#a", "--json"], more].concat()).code(0);
        ran.json()["records"][0]["steps"].clone()
    };
    assert_eq!(steps(&[])["names"], json!(["charge", "ship"]));
    assert_eq!(steps(&[])["results"], json!(null));
    assert!(steps(&["--show-result"])["results"].as_str().unwrap().contains("s3cr3t"));
    let shown = world.records(&["show", "place#a", "--show-result"]).code(0).out;
    assert!(shown.contains("s3cr3t"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_not_sent_are_shown_without_their_bodies() {
    let world = World::new().await;
    let outbox = r#"[{"to":"https://sqs/parcels","body":"s3cr3t"},{"to":"https://sqs/mails","body":"s3cr3t 2",
        "attributes":{"tenant":"s3cr3t 3"}}]"#;
    world.put("place#a", "COMPLETED", &json!({ "outbox": { "S": outbox } }));
    world.put("place#b", "COMPLETED", &json!({}));
    let encrypted = "\"lambda-idempotency:1 aes-256-gcm=k AAAA\"";
    world.put("place#c", "COMPLETED", &json!({ "outbox": { "S": encrypted } }));
    let ran = world.records(&["list", "--unsent"]).code(0);
    assert!(!ran.out.contains("s3cr3t"), "{}", ran.out);
    page(&ran, "unsent.txt");

    let show = |more: &[&str]| {
        let ran = world.records(&[&["show", "place#a", "--json"], more].concat()).code(0);
        ran.json()["records"][0]["unsent"].clone()
    };
    let unsent = show(&[]);
    assert_eq!(unsent["count"], 2);
    assert_eq!(unsent["messages"][1]["destination"], "https://sqs/mails");
    assert_eq!(unsent["messages"][1]["id"].as_str().unwrap().len(), 64);
    assert!(!unsent.to_string().contains("s3cr3t"), "{unsent}");
    assert_eq!(show(&["--show-result"])["messages"][0]["body"], "s3cr3t");
    let ran = world.records(&["show", "place#a", "--show-result"]).code(0);
    assert!(ran.out.contains("s3cr3t 2"), "{}", ran.out);

    let shown = world.records(&["show", "--json", "place#b", "place#c"]).code(0).json();
    assert_eq!(shown["records"][0]["unsent"], json!(null));
    assert_eq!(shown["records"][1]["unsent"], json!({ "count": null, "bytes": encrypted.len() }));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_not_sent_are_found_by_the_index() {
    let world = World::empty().await;
    let table = Table::new(TABLE, "id").ttl("expiration").index("unfinished", "unfinished");
    world.db.create_table(&table).unwrap();
    for number in 0..20 {
        world.put(&format!("place#{number}"), "COMPLETED", &json!({}));
    }
    let unsent = json!({
        "outbox": { "S": r#"[{"to":"parcels","body":"s3cr3t"}]"# }, "unfinished": { "S": "messages#07" },
    });
    world.put("place#a", "COMPLETED", &unsent);
    world.db.faults().add(Fault::error(Apply::Before, 400, "ValidationException").on("Scan"));
    let ran = world.records(&["list", "--unsent", "--index", "unfinished", "--json"]).code(0);
    let found = ran.json();
    assert_eq!((&found["read"], &found["records"][0]["key"]), (&json!(1), &json!("place#a")));
    assert!(!ran.out.contains("s3cr3t"), "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_table_holds_cannot_control_the_terminal() {
    let world = World::new().await;
    let evil = "x'; echo '\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}#k";
    let more = json!({ "error": { "S": "E\u{1b}[31m" }, "application": { "S": "a\u{1b}[5m" } });
    world.put(evil, "FAILED", &more);
    let is_safe = |text: &str| {
        text.chars().all(|letter| letter == '\n' || !letter.is_control() && letter != '\u{202e}')
    };
    for arguments in [&["list"][..], &["list", "--json"], &["show", evil], &["free", evil]] {
        let ran = world.records(arguments).code(0);
        assert!(is_safe(&ran.out) && is_safe(&ran.err), "{arguments:?} {:?}", ran.out);
    }
    let listed = world.records(&["list", "--json"]).json();
    assert_eq!(listed["records"][0]["key"], evil);
}

/// What follows the break would look like the record of another key.
#[tokio::test(flavor = "multi_thread")]
async fn a_line_break_in_a_table_makes_no_line() {
    let world = World::new().await;
    let forged = "place#a\n\nplace#b\n  completed: later deliveries are answered from it";
    let more = json!({
        "error": { "S": "E\nplace#c" }, "application": { "S": "a\nplace#d" }, "data": { "S": "\"\nplace#e\"" },
    });
    world.put(forged, "FAILED", &more);
    for arguments in [
        &["list", "--show-result"][..],
        &["show", forged, "--show-result"],
        &["show", "none\nplace#f"],
        &["free", forged],
        &["release", "none\nplace#g"],
    ] {
        let ran = world.records(arguments);
        let forged = ran.out.lines().skip(1).find(|line| line.starts_with("place#"));
        assert_eq!(forged, None, "{arguments:?} {}", ran.out);
    }
}

/// The key of the last record of a page is the cursor, whatever is in it.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_goes_on_at_a_cursor_with_control_characters() {
    let world = World::new().await;
    for number in 0..6 {
        world.put(&format!("place#\u{1b}[2J\n%{number}\u{202e}"), "FAILED", &json!({}));
    }
    let (mut found, mut after) = (0, None);
    loop {
        let more: Vec<&str> = after.iter().flat_map(|after: &String| ["--cursor", after]).collect();
        let page = world.records(&[&["list", "--limit", "1"], &more[..]].concat()).code(0).out;
        found += usize::from(page.contains("permanently failed"));
        let Some((_, cursor)) = page.rsplit_once("--cursor ") else { break };
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
        assert!(cursor.trim().chars().all(is_plain), "a shell changes {cursor}");
        after = Some(cursor.trim().to_owned());
    }
    assert_eq!(found, 6);
    for cursor in ["%", "place#a", "_w"] {
        world.records(&["list", "--cursor", cursor]).refused("is not one that a list has printed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_with_another_key_is_not_called_empty() {
    let world = World::empty().await;
    world.db.create_table(&Table::new("other", "pk")).unwrap();
    world.db.put_item("other", &json!({ "pk": { "S": "a" } })).unwrap();
    world.db.create_table(&Table::new("sorted", "id").sort("sk")).unwrap();
    for table in ["other", "sorted"] {
        let ran = world.records(&["list", "--table", table]).code(2);
        assert!(ran.out.is_empty() && ran.err.contains("--sort-key"), "{}", ran.err);
    }
}

/// A laptop that woke up from sleep takes a live claim for one that has lapsed.
#[tokio::test(flavor = "multi_thread")]
async fn whether_a_claim_lives_is_decided_by_the_clock_of_dynamodb() {
    let mut claim = claimed(-1800);
    let item = claim.as_object_mut().unwrap();
    item.insert("id".to_owned(), json!({ "S": "place#live" }));
    item.insert("status".to_owned(), json!({ "S": "INPROGRESS" }));
    item.insert("expiration".to_owned(), json!({ "N": seconds_from_now(86_400).to_string() }));
    for (date, result) in [(-3600, "refused"), (0, "planned")] {
        let endpoint = answering(json!({ "Item": claim }).to_string(), seconds_from_now(date));
        let command = records_at(&endpoint, &["free", "place#live", "--json"]);
        let output = ran(command);
        assert_eq!(output.json()["records"][0]["result"], result, "{}", output.err);
        assert_eq!(output.err.contains("clock of this machine"), date != 0, "{}", output.err);
    }
}
