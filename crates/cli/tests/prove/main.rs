//! `prove` against MiniStack's SQS, DynamoDB and CloudWatch Logs, with this project's sandboxes in
//! the place of Lambda's: a function that is right, also on a table that throttles, and three that are not. Takes
//! minutes, and needs the function (`cargo build --bin prove`).

// A test may panic, but Clippy only allows it in functions marked `#[test]`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the pollers run beside the command")]

mod lambda;
#[path = "../../../dynamodb/tests/elsewhere/ministack.rs"]
mod ministack;
mod stack;

use std::{
    path::PathBuf,
    process::{Output, Stdio},
};

use aws_sdk_dynamodb::types::AttributeValue;
use lambda_idempotency_local::{DynamoDb, Fault};
use tokio::{process::Command, task::JoinSet};

use lambda::{Lambda, TIMEOUT};
use ministack::MiniStack;
use stack::{REGION, Services, Stack, arn};

const NAME: &str = "mine";

/// A stack with a function that runs, and the command.
struct World {
    pollers: JoinSet<()>,
    ministack: MiniStack,
    services: Services,
}

impl World {
    async fn new() -> Self {
        let ministack = MiniStack::start("sqs,dynamodb,logs");
        let services = Services::new(ministack.url()).await;
        Self { pollers: JoinSet::new(), ministack, services }
    }

    /// Makes the stack, and lets the function with this mistake work.
    async fn deploy(&mut self, mistake: &str) -> Stack {
        let stack = Stack::create(&self.services, NAME, NAME).await;
        let lambda = Lambda::start(&self.services, &stack, function(), mistake).await;
        for queue in [&stack.queue, &stack.fifo] {
            let arn = arn(&self.services, queue).await;
            for _ in 0..2 {
                self.pollers.spawn(lambda.clone().poll(queue.clone(), arn.clone()));
            }
        }
        stack
    }

    /// Moves the lines of the ledger into the past.
    async fn make_old(&self, ledger: &str) {
        let dynamodb = &self.services.dynamodb;
        let mut pages = dynamodb.scan().table_name(ledger).into_paginator().items().send();
        while let Some(item) = pages.next().await {
            let mut item = item.unwrap();
            item.insert("at".to_owned(), AttributeValue::N("1".to_owned()));
            dynamodb.put_item().table_name(ledger).set_item(Some(item)).send().await.unwrap();
        }
    }

    async fn prove(&self, arguments: &[&str]) -> Output {
        self.prove_patiently("180", arguments).await
    }

    async fn prove_patiently(&self, patience: &str, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lambda-idempotency"))
            .args(["prove", "--stack", NAME, "--patience", patience])
            .args(arguments)
            .env("AWS_ENDPOINT_URL", self.ministack.url())
            .env("AWS_ENDPOINT_URL_DYNAMODB", &self.services.dynamodb_url)
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_REGION", REGION)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap()
    }
}

/// The function, which Cargo puts beside the command.
fn function() -> PathBuf {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_lambda-idempotency")).with_file_name("prove");
    assert!(path.exists(), "there is no {}: `bash tests/run prove` builds it", path.display());
    path
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!("{}\n{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err))
}

/// The number of a row.
fn number(page: &str, row: &str) -> u64 {
    let row = page.lines().find_map(|line| line.trim().strip_prefix(row)).unwrap_or_else(|| {
        panic!("no row {row} in:\n{page}");
    });
    row.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_of_every_source_is_survived() {
    let mut world = World::new().await;
    let stack = world.deploy("none").await;
    let intended = world.prove(&[]).await;
    assert!(intended.status.success(), "{}", said(&intended));
    assert!(said(&intended).contains("Nothing was sent. Add --yes"), "{}", said(&intended));

    // Dead letters of a run that was stopped stay where they are, and hold up nothing.
    for _ in 0..12 {
        let send = world.services.sqs.send_message().queue_url(&stack.dead);
        send.message_body(r#"{"run":"stopped","order":1}"#).send().await.unwrap();
    }
    let output = world.prove(&["--orders", "200", "--yes"]).await;
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(number(&text, "violations"), 0, "{text}");
    for row in [
        "die",
        "die-late",
        "hang",
        "hang-late",
        "block",
        "block-late",
        "throw",
        "slow",
        "throttle",
        "fail",
    ] {
        assert!(number(&text, row) > 0, "{row}: {text}");
    }
    for row in ["queue", "FIFO queue", "in a dead-letter queue", "timed out"] {
        assert!(number(&text, row) > 0, "{row}: {text}");
    }
    // An order whose attempt ended after its effect has two effects, and the audit says why.
    assert!(number(&text, "killed between effect and completion") > 0, "{text}");
    assert!(number(&text, "dropped at the deadline after the effect") > 0, "{text}");
    assert!(number(&text, "missed the deadline after the effect") > 0, "{text}");
    let orders = number(&text, "orders");
    let expected = orders - number(&text, "fail") + number(&text, "effects again, with a cause");
    assert_eq!(number(&text, "effects"), expected, "{text}");

    // Another run has to wait, and then finds nothing of this one.
    let again = ["--orders", "60", "--faults", "throw", "--yes"];
    let output = world.prove(&again).await;
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("at work for the run"), "{}", said(&output));
    world.make_old(&stack.ledger).await;
    let output = world.prove(&again).await;
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(number(&said(&output), "effects"), 60);
}

/// The tables are in the embedded DynamoDB, which throttles all writes of records for some seconds, again and again. Then
/// completions are lost, and the command sends these orders once more.
#[tokio::test(flavor = "multi_thread")]
async fn throttling_is_survived() {
    let dynamodb = DynamoDb::start().await.unwrap();
    let proxy = dynamodb.proxy().await.unwrap();
    let mut world = World::new().await;
    world.services.use_dynamodb(&proxy.url());
    let stack = world.deploy("none").await;
    let services = world.services.clone();
    world.pollers.spawn(async move {
        services.wait_for_a_message(&stack.queue).await;
        for _ in 0..4 {
            for operation in ["PutItem", "DeleteItem", "BatchExecuteStatement"] {
                let throttled = Fault::throttled().on(operation).table(&stack.table);
                dynamodb.faults().add(throttled);
            }
            tokio::time::sleep(TIMEOUT + TIMEOUT / 2).await;
            dynamodb.faults().clear();
            tokio::time::sleep(TIMEOUT).await;
        }
        std::future::pending::<()>().await;
    });
    let output = world.prove(&["--orders", "120", "--faults", "slow,throttle", "--yes"]).await;
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    for row in ["unavailable", "completion_lost"] {
        assert!(number(&text, row) > 0, "{row}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_found() {
    for (mistake, offence) in [("unprotected", "Doubled"), ("early", "Lost"), ("key", "Doubled")] {
        let mut world = World::new().await;
        world.deploy(mistake).await;
        let output = world.prove(&["--orders", "60", "--faults", "die", "--yes"]).await;
        let text = said(&output);
        assert_eq!(output.status.code(), Some(1), "{mistake}: {text}");
        let is_shown = |line: &str| {
            line.trim().starts_with(offence) && (line.contains(" o-") || line.contains(" m-"))
        };
        assert!(text.lines().any(is_shown), "{mistake}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_stack_is_left_alone() {
    let world = World::new().await;
    let none = world.prove(&["--yes"]).await;
    assert_eq!(none.status.code(), Some(2));
    assert!(said(&none).contains("there is no table mine-ledger"), "{}", said(&none));

    Stack::create(&world.services, NAME, "yours").await;
    let other = world.prove(&["--yes"]).await;
    assert_eq!(other.status.code(), Some(2));
    assert!(said(&other).contains("no tag lambda-idempotency-prove=mine"), "{}", said(&other));
}

/// The ledger has the tags, and names a queue of somebody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_of_another_stack_is_left_alone() {
    let world = World::new().await;
    let stack = Stack::create(&world.services, NAME, NAME).await;
    assert!(world.prove(&[]).await.status.success());
    for (queue, tag) in [(&stack.queue, "queue"), (&stack.dead, "dead letters")] {
        let untag = world.services.sqs.untag_queue().queue_url(queue);
        untag.tag_keys("lambda-idempotency-prove").send().await.unwrap();
        let output = world.prove(&["--yes"]).await;
        assert_eq!(output.status.code(), Some(2), "{tag}");
        let expected = format!("{queue}, which the table mine-ledger names, has no tag");
        assert!(said(&output).contains(&expected), "{}", said(&output));
        let tag = world.services.sqs.tag_queue().queue_url(queue);
        tag.tags("lambda-idempotency-prove", NAME).send().await.unwrap();
    }
}

/// Nobody handles the messages.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_given_up_proves_nothing() {
    let world = World::new().await;
    Stack::create(&world.services, NAME, NAME).await;
    let output = world.prove_patiently("5", &["--orders", "20", "--yes"]).await;
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("wrote nothing to its ledger"), "{}", said(&output));
}
