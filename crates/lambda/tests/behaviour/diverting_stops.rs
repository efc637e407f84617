//! An invocation stops at every await, also in its sinks: what was acknowledged was processed, or its sink has it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use lambda_idempotency::{
    Failure, Function, Idempotency, MemoryStore, Operation,
    source::{DivertedRecord, Sqs},
};
use lambda_idempotency_testkit::crashing::{DelayedStore, DelayedWrites, crash_points, drop_after};
use serde_json::{Value, json};

use crate::support::{FIFO, World, batch, grouped, ids, serve, with_body};

/// Messages of a FIFO queue: those with a label are never processed.
const MESSAGES: [(&str, &str, &str); 6] = [
    ("m-1", r#"{"id":"a","do":"give up","n":0}"#, "g"),
    ("m-2", r#"{"id":"b","do":"","n":1}"#, "g"),
    ("m-3", "not JSON", "g"),
    ("m-4", r#"{"id":"b","do":"","n":2}"#, "g"),
    ("m-5", r#"{"id":"c","do":"","n":0}"#, "g"),
    ("m-6", r#"{"id":"d","do":"","n":0}"#, "h"),
];

/// What the sink has seen.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// How often it fails before it takes a record.
    refusals: usize,
    called: BTreeSet<String>,
    taken: BTreeSet<String>,
    /// The ids of each record.
    ids: BTreeMap<String, BTreeSet<String>>,
}

impl Sink {
    async fn take(self, diverted: DivertedRecord) -> Result<(), Failure> {
        let record = diverted.record.id.to_string();
        {
            let mut seen = self.0.lock().unwrap();
            seen.called.insert(record.clone());
            seen.ids.entry(record.clone()).or_default().insert(diverted.id);
        }
        tokio::task::yield_now().await;
        {
            let mut seen = self.0.lock().unwrap();
            if seen.refusals > 0 {
                seen.refusals -= 1;
                return Err("out of reach".into());
            }
            seen.taken.insert(record);
        }
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// A queue, the store, and what a function makes of them.
struct Story {
    world: World,
    store: DelayedStore<MemoryStore>,
    sink: Sink,
    /// The messages that are left.
    queue: Vec<usize>,
    /// A mistake, for the checks to find: a message is acknowledged as soon as its sink is called.
    acknowledges_early: bool,
}

impl Story {
    fn new(refusals: usize, acknowledges_early: bool) -> Self {
        let sink = Sink::default();
        sink.0.lock().unwrap().refusals = refusals;
        Self {
            world: World::instant(),
            store: DelayedStore::new(MemoryStore::new()),
            sink,
            queue: (0..MESSAGES.len()).collect(),
            acknowledges_early,
        }
    }

    fn function(&self) -> Function {
        let sink = self.sink.clone();
        let source = Sqs::new().divert(move |diverted| sink.clone().take(diverted));
        let operation = Operation::new("place").key("id").fingerprint("n");
        let idempotency =
            Idempotency::new(self.store.clone()).with_clock(self.world.clock.clone()).without_log();
        idempotency.on(source, &operation, self.world.handler()).unwrap()
    }

    fn event(&self) -> Value {
        let message = |at: &usize| {
            let (message, body, group) = MESSAGES[*at];
            grouped(with_body(message, body), FIFO, group)
        };
        batch(self.queue.iter().map(message))
    }

    /// Delivers what is left, and stops after so many polls. Returns whether the invocation ended before.
    async fn deliver(&mut self, polls: usize) -> bool {
        let (function, event) = (self.function(), self.event().to_string());
        let invocation = serve(function, &event, self.world.context());
        let answer = self.world.clock.drive(drop_after(polls, invocation)).await;
        self.store.delayed_writes(DelayedWrites::Lost);
        if self.acknowledges_early {
            let seen = self.sink.0.lock().unwrap();
            self.queue.retain(|at| !seen.called.contains(MESSAGES[*at].0));
        }
        let ended = answer.is_some();
        if let Some(answer) = answer {
            let answer = answer.map(|answer| serde_json::from_str(answer.get()).unwrap());
            let returned = ids(&answer.unwrap_or_else(|_| json!({ "batchItemFailures": [] })));
            self.queue.retain(|at| returned.iter().any(|id| id == MESSAGES[*at].0));
        }
        // A lease, and the clock skew.
        self.world.clock.advance(Duration::from_secs(40));
        ended
    }

    /// Delivers until nothing is left; returns what is wrong then.
    async fn end(mut self) -> Vec<String> {
        for _ in 0..4 {
            if !self.queue.is_empty() {
                self.deliver(usize::MAX).await;
            }
        }
        let mut wrong: Vec<_> =
            self.queue.iter().map(|at| format!("{} is stuck", MESSAGES[*at].0)).collect();
        let seen = self.sink.0.lock().unwrap();
        for (message, body, _) in MESSAGES {
            let id = serde_json::from_str::<Value>(body).unwrap_or_default()["id"].clone();
            let was_processed = id.as_str().is_some_and(|id| self.world.ledger.executed(id) > 0);
            let is_hopeless = matches!(message, "m-1" | "m-3" | "m-4");
            if is_hopeless && !seen.taken.contains(message) {
                wrong.push(format!("{message} is acknowledged, and its sink does not have it"));
            }
            if !is_hopeless && !was_processed {
                wrong.push(format!("{message} is lost"));
            }
        }
        let distinct: BTreeSet<_> = seen.ids.values().flatten().collect();
        if distinct.len() != seen.ids.len() || seen.ids.values().any(|ids| ids.len() != 1) {
            wrong.push(format!("a record has not one id of its own: {:?}", seen.ids));
        }
        wrong
    }
}

/// Everything that is wrong after a stop at some await.
async fn wrong(refusals: usize, acknowledges_early: bool) -> Vec<String> {
    let mut all = Vec::new();
    for fate in [DelayedWrites::Lost, DelayedWrites::After(0), DelayedWrites::After(2)] {
        let points = crash_points(async |polls| {
            let mut story = Story::new(refusals, acknowledges_early);
            story.store.delayed_writes(fate);
            let ended = story.deliver(polls).await;
            let wrong = story.end().await;
            all.extend(wrong.into_iter().map(|what| format!("{fate:?}, {polls} polls: {what}")));
            ended
        });
        assert!(points.await > 10, "it stops in the claims, the settlements and the sinks");
    }
    all
}

#[tokio::test]
async fn what_is_acknowledged_was_processed_or_its_sink_has_it() {
    for refusals in [0, 1, 3] {
        assert_eq!(wrong(refusals, false).await, [""; 0], "{refusals} refusals");
    }
}

#[tokio::test]
async fn the_checks_find_an_acknowledgement_before_the_sink_has_returned() {
    let wrong = wrong(0, true).await;
    let early = "is acknowledged, and its sink does not have it";
    assert!(wrong.iter().any(|what| what.ends_with(early)), "{wrong:?}");
}
