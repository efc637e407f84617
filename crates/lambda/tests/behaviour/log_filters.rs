//! The metric filters of `template.yaml` count what the library logs.

use lambda_idempotency::{Operation, observe::TracingObserver, source::Sqs, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};
use serde_json::{Value, json};

use crate::{
    secrecy::capture::Captured,
    support::{World, batch, order, with_body},
};

/// The messages and the outcomes of the lines that the template's filters count: of lost completions, and of permanent failures.
const FILTERS: [(&str, &[&str]); 2] = [
    ("record done", &["completion_lost", "unprotected"]),
    ("record returned", &["permanently_failed"]),
];

/// The filter as the template has it, in the language of CloudWatch.
fn pattern((message, outcomes): (&str, &[&str])) -> String {
    let outcomes: Vec<_> =
        outcomes.iter().map(|outcome| format!("$.fields.outcome = \"{outcome}\"")).collect();
    let any = outcomes.join(" || ");
    let any = if outcomes.len() > 1 { format!("({any})") } else { any };
    format!("FilterPattern: '{{ $.fields.message = \"{message}*\" && {any} }}'")
}

#[tokio::test]
async fn the_log_filters_of_the_template_match_the_logged_lines() {
    let (world, captured) = (World::new(), Captured::default());
    let guard = captured.start_as_lambda_does();
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let operation = Operation::new("place").key("id");
    let sqs = idempotency.on(Sqs::new(), &operation, world.handler()).unwrap();
    let body = |id: &str, what: &str| with_body(id, &json!({ "id": id, "do": what }).to_string());
    let orders = batch([body("gives-up", "give up"), body("fails", "fail"), body("works", "")]);
    for _ in 0..2 {
        world.invoke(&sqs, &orders).await.unwrap();
    }
    world
        .store
        .inject(Fault::refuse(StoreErrorKind::Corrupt).guarded_by(GuardKind::OwnedBy).always());
    world.invoke(&sqs, &batch([body("not-recorded", "")])).await.unwrap();
    drop(guard);

    let lines: Vec<Value> =
        captured.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let template = include_str!("../../../../template.yaml");
    let found = FILTERS.map(|(message, outcomes)| {
        let filter = pattern((message, outcomes));
        assert!(template.contains(&filter), "the template lacks {filter}");
        let text = |line: &Value, field: &str| {
            line["fields"][field].as_str().unwrap_or_default().to_owned()
        };
        let said = lines.iter().filter(|line| text(line, "message").starts_with(message));
        let said = said.map(|line| text(line, "outcome"));
        said.filter(|outcome| outcomes.contains(&outcome.as_str())).collect::<Vec<_>>()
    });
    assert_eq!(found, [["completion_lost"], ["permanently_failed"]]);
    assert!(lines.len() >= 7, "{lines:#?}");
}

/// What a function logs at the level that Lambda has by default.
async fn lines_of(world: &World, event: &Value) -> Vec<Value> {
    let captured = Captured::default();
    let idempotency = world.idempotency().with_log(TracingObserver::new());
    let place = Operation::new("place").key("id");
    let function = idempotency.on(Sqs::new(), &place, world.handler()).unwrap();
    let guard = captured.start_as_lambda_does();
    world.invoke(&function, event).await.unwrap();
    drop(guard);
    captured.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_success_writes_no_line_and_a_batch_of_them_one() {
    let world = World::new();
    let messages = || (0..10).map(|id| order(&format!("m-{id}"), &format!("o-{id}"), ""));
    for (event, outcomes) in [
        (batch(messages().take(1)), None),
        (batch(messages()), Some("9 executed, 1 replayed")),
        (batch(messages()), Some("10 replayed")),
    ] {
        let lines = lines_of(&world, &event).await;
        let counts: Vec<_> = lines.iter().map(|line| line["fields"]["outcomes"].as_str()).collect();
        assert_eq!(counts, outcomes.into_iter().map(Some).collect::<Vec<_>>(), "{lines:?}");
        assert!(lines.iter().all(|line| line["level"] == "INFO"), "{lines:?}");
    }
}

#[tokio::test]
async fn a_record_that_returns_is_not_said_to_be_done() {
    let world = World::new();
    for (message, said, outcome, failed_attempts) in [
        (order("m-1", "a", "fail"), "record returned", "failed", 1),
        (order("m-1", "a", "fail"), "record returned", "failed", 2),
        (with_body("m-2", "{}"), "record rejected", "rejected", 0),
    ] {
        let lines = lines_of(&world, &batch([message])).await;
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let fields = &line["fields"];
        assert_eq!((&line["level"], &fields["message"]), (&json!("WARN"), &json!(said)));
        assert_eq!(fields["outcome"], outcome);
        assert_eq!(fields["failed_attempts"], failed_attempts, "{line}");
    }
}
