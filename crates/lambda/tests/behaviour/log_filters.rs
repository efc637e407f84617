//! The metric filters of `template.yaml` count what the library logs.

use std::{fs, iter::Peekable, str::Chars};

use lambda_idempotency::{Operation, observe::TracingObserver, source::Sqs, store::StoreErrorKind};
use lambda_idempotency_testkit::faults::{Fault, GuardKind};
use serde_json::{Value, json};

use crate::{
    secrets_capture::Captured,
    support::{World, batch, order, with_body},
};

/// A filter pattern for JSON lines, with the operators that the template uses:
/// <https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html>
struct Pattern<'a>(Peekable<Chars<'a>>);

impl Pattern<'_> {
    fn matches(pattern: &str, line: &Value) -> bool {
        let inner = pattern.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let mut parser = Pattern(inner.unwrap().chars().peekable());
        let found = parser.either(line);
        assert_eq!(parser.token(), None, "the end of {pattern}");
        found
    }

    fn either(&mut self, line: &Value) -> bool {
        let mut found = self.both(line);
        while self.skip('|') {
            found |= self.both(line);
        }
        found
    }

    fn both(&mut self, line: &Value) -> bool {
        let mut found = self.term(line);
        while self.skip('&') {
            found &= self.term(line);
        }
        found
    }

    fn term(&mut self, line: &Value) -> bool {
        match self.token() {
            Some('(') => {
                let found = self.either(line);
                assert_eq!(self.token(), Some(')'));
                found
            }
            Some('$') => {
                let selector: String = self.until(' ').replace('.', "/");
                assert_eq!((self.token(), self.token()), (Some('='), Some('"')));
                let wanted = self.until('"');
                let found = line.pointer(&selector).and_then(Value::as_str).unwrap_or_default();
                match wanted.strip_suffix('*') {
                    Some(start) => found.starts_with(start),
                    None => found == wanted,
                }
            }
            other => panic!("{other:?} is not the beginning of a term"),
        }
    }

    fn token(&mut self) -> Option<char> {
        self.0.by_ref().find(|char| *char != ' ')
    }

    fn until(&mut self, end: char) -> String {
        self.0.by_ref().take_while(|char| *char != end).collect()
    }

    /// Skips an operator of two of these characters, if it comes next.
    fn skip(&mut self, operator: char) -> bool {
        while self.0.next_if_eq(&' ').is_some() {}
        let is_next = self.0.next_if_eq(&operator).is_some();
        assert!(!is_next || self.0.next() == Some(operator), "one {operator} alone");
        is_next
    }
}

/// The patterns of the template, in order: lost completions, permanent failures.
fn patterns() -> [String; 2] {
    let template = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml"));
    let template = template.unwrap();
    let all = template.lines().filter_map(|line| line.trim().strip_prefix("FilterPattern: '"));
    let all: Vec<String> = all.map(|line| line.strip_suffix('\'').unwrap().to_owned()).collect();
    all.try_into().unwrap()
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
    let outcomes = |pattern: &str| -> Vec<String> {
        let counted = lines.iter().filter(|line| Pattern::matches(pattern, line));
        counted.map(|line| line["fields"]["outcome"].as_str().unwrap().to_owned()).collect()
    };
    let [not_recorded, permanent] = patterns();
    assert_eq!(outcomes(&not_recorded), ["completion_lost"]);
    assert_eq!(outcomes(&permanent), ["permanently_failed"]);
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
async fn a_record_that_returns_is_not_said_to_be_settled() {
    let world = World::new();
    for (message, said, outcome, failed_attempts) in [
        (order("m-1", "a", "fail"), "record returned", "failed", 1),
        (order("m-1", "a", "fail"), "record returned", "failed", 2),
        (with_body("m-2", "{}"), "record refused", "rejected", 0),
    ] {
        let lines = lines_of(&world, &batch([message])).await;
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let fields = &line["fields"];
        assert_eq!((&line["level"], &fields["message"]), (&json!("WARN"), &json!(said)));
        assert_eq!(fields["outcome"], outcome);
        assert_eq!(fields["failed_attempts"], failed_attempts, "{line}");
    }
}
