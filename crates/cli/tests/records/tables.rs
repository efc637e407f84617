//! `table check`, what is missing, and completions.

use lambda_idempotency_local::{Apply, Fault, Table};
use serde_json::Value;

use crate::{
    ran::{Ran, command},
    support::{TABLE, World, file, ran, records_at},
};

async fn problems(table: Option<Table>, more: &[&str]) -> (i32, Vec<String>) {
    let world = World::empty().await;
    if let Some(table) = table {
        world.db.create_table(&table).unwrap();
    }
    let ran = world.records(&[&["table", "check", "--json"], more].concat());
    let problems = ran.json()["problems"].as_array().unwrap().clone();
    let text = |problem: Value| problem.as_str().unwrap().to_owned();
    (ran.code.unwrap(), problems.into_iter().map(text).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn check_says_in_a_sentence_what_is_wrong() {
    let fine = Table::new(TABLE, "id").ttl("expiration");
    assert_eq!(problems(Some(fine.clone()), &[]).await, (0, vec![]));
    for (table, more, said) in [
        (None, &[][..], "There is no table"),
        (Some(Table::new(TABLE, "id")), &[], "Time to live is off"),
        (Some(Table::new(TABLE, "id").ttl("ttl")), &[], "they are never deleted"),
        (Some(Table::new(TABLE, "pk").ttl("expiration")), &[], "The partition key is `pk`"),
        (Some(fine.clone()), &["--index", "unfinished"], "no global secondary index `unfinished`"),
        (
            Some(fine.clone().index("unfinished", "other")),
            &["--index", "unfinished"],
            "has another key",
        ),
        (Some(fine.clone().sort("sk")), &[], "has the sort key `sk`, and the store uses none"),
        (Some(fine.clone()), &["--sort-key", "sk", "--partition", "p"], "has no sort key"),
        (Some(fine.clone()), &["--sort-key", "sk", "--partition-prefix", "p"], "has no sort key"),
    ] {
        let (code, problems) = problems(table, more).await;
        assert!(code == 1 && problems.len() == 1 && problems[0].contains(said), "{problems:?}");
    }
    for partition in ["--partition", "--partition-prefix"] {
        let sorted = Some(fine.clone().sort("sk"));
        assert_eq!(problems(sorted, &["--sort-key", "sk", partition, "p#"]).await, (0, vec![]));
    }
    let indexed = fine.clone().index("unfinished", "unfinished");
    assert_eq!(problems(Some(indexed), &["--index", "unfinished"]).await, (0, vec![]));
    let named = Table::new(TABLE, "pk").ttl("ttl");
    let names = file("attributes", r#"{"id":"pk","expiration":"ttl"}"#);
    assert_eq!(problems(Some(named), &["--attributes", &names]).await, (0, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_named_with_its_remedy() {
    let world = World::empty().await;
    world.records(&["show", "place#a", "--table", "none"]).refused("does not exist");
    let other = file("other-attributes", r#"{"colour":"red"}"#);
    world.records(&["list", "--attributes", &other]).refused("no attribute `colour`");
    let broken = file("broken-attributes", r#"["id"]"#);
    world.records(&["list", "--attributes", &broken]).refused("expiration");
    world.records(&["list", "--sort-key", "sk"]).refused("--partition-prefix");
    ran(records_at("localhost:8000", &["list"])).refused("must begin with http://");
    let mut unsigned = command(["records", "list", "--region", "eu-west-1", "--table", "t"]);
    unsigned.env_clear().env("AWS_EC2_METADATA_DISABLED", "true");
    Ran::from(&mut unsigned).refused("export-credentials");
    let mut unnamed = command(["records", "list"]);
    Ran::from(unnamed.env_remove("IDEMPOTENCY_TABLE")).refused("--table");
}

/// An option that is ignored leaves people at another store than the one that they mean.
#[test]
fn an_option_of_another_kind_of_store_is_refused() {
    for (more, said) in [
        (&["--redis-prefix", "p:"][..], "--redis-prefix has no effect on DynamoDB"),
        (&["--password-from-env", "P"], "--password-from-env has no effect on DynamoDB"),
        (&["--allow-eviction"], "--allow-eviction has no effect on DynamoDB"),
        (&["--store", "redis://127.0.0.1:1"], "--region has no effect on Redis"),
        (&["--store", "postgres://127.0.0.1:1/db"], "--region has no effect on PostgreSQL"),
    ] {
        let list = [&["list"], more].concat();
        ran(records_at("http://127.0.0.1:1", &list)).refused(said).refused("Leave it out");
    }
}

/// The other commands read the table itself.
#[test]
fn an_index_is_for_the_check_and_for_unsent_messages() {
    for (arguments, said) in [
        (&["list", "--index", "unfinished"][..], "--unsent"),
        (&["show", "place#a", "--index", "unfinished"], "unexpected argument '--index'"),
    ] {
        ran(records_at("http://127.0.0.1:1", arguments)).refused(said);
    }
    let server = ["--store", "postgres://127.0.0.1:1/db", "--index", "unfinished"];
    Ran::from(command(["records", "table", "check"]).args(server))
        .refused("--index has no effect on PostgreSQL");
}

#[test]
fn completions_know_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = Ran::from(&mut command(["completions", shell])).code(0).out;
        assert!(script.contains("records") && script.contains("redrive"), "{shell}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_failed_says_which_and_why() {
    // Nobody listens there.
    for arguments in [&["list"][..], &["table", "check"]] {
        let none = ran(records_at("http://127.0.0.1:1", arguments)).refused(TABLE);
        let none = none.refused("did not reach DynamoDB");
        assert!(!none.err.contains("unhandled"), "{arguments:?}: {}", none.err);
    }
    let world = World::new().await;
    let denied = || Fault::error(Apply::Before, 400, "AccessDeniedException").times(1);
    world.db.faults().add(denied().on("DescribeTable"));
    let said = "DescribeTable on DynamoDB table idempotency was refused: AccessDeniedException";
    world.records(&["table", "check"]).refused(said);
}
