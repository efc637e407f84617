//! Sources that keep an order: the final outcome of each record, and the sequence of effects, from an effect ledger that
//! outlives the processes.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use lambda_idempotency_local::{FunctionConfig, StreamConfig};
use lambda_idempotency_tests::{
    events::{batch, in_a_pipe, kafka, kinesis, message_in_group, order, order_with},
    function,
};
use serde_json::{Value, json};

use crate::support::{AFTER_THE_LEASE, TIMEOUT, World, history, returned};

fn every_source() -> FunctionConfig {
    function(env!("CARGO_BIN_EXE_every_source"))
}

/// The effect ledger of one test.
pub(crate) struct Effects(PathBuf);

impl Effects {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("effects-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Self(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    pub(crate) fn of(&self, function: FunctionConfig) -> FunctionConfig {
        function.env("SCRIPTED_LEDGER", self.0.to_str().unwrap())
    }

    /// A line for each handler that started, and one for each order that was placed.
    pub(crate) fn lines(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// How often the handler of an order has started.
    fn starts(&self, order: &str) -> usize {
        self.lines().lines().filter(|line| line.starts_with(&format!("start {order} "))).count()
    }

    /// The orders in the order in which they were placed.
    fn placed(&self) -> Vec<String> {
        let lines = self.lines();
        let placed = lines.lines().filter_map(|line| line.strip_prefix("effect "));
        placed.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn fails(id: &str, times: u32) -> Value {
    order_with(id, json!({ "failTimes": times }))
}

#[tokio::test]
async fn a_message_group_keeps_its_order_after_failures() {
    for is_piped in [false, true] {
        let effects = Effects::new();
        let world = World::of(effects.of(every_source())).await;
        let event = batch([
            message_in_group("m-1", "a", &fails("a-1", 2)),
            message_in_group("m-2", "a", &order("a-2")),
            message_in_group("m-3", "b", &order("b-1")),
            message_in_group("m-4", "a", &order("a-3")),
        ]);
        let report = world.send(&if is_piped { in_a_pipe(event) } else { event }).await;
        assert!(report.is_complete());
        assert_eq!(effects.placed(), ["b-1", "a-1", "a-2", "a-3"]);
        let first = report.invocations.first().unwrap();
        let first: Vec<_> = first.records.iter().map(|record| record.outcome.as_str()).collect();
        assert_eq!(first, ["failed", "returned", "executed", "returned"]);
    }
}

#[tokio::test]
async fn a_message_group_keeps_its_order_after_a_death() {
    let effects = Effects::new();
    let world = World::outlasting_leases(effects.of(every_source())).await;
    let dies = order_with("a-2", json!({ "dieTimes": 1 }));
    let report = world
        .send(&batch([
            message_in_group("m-1", "a", &order("a-1")),
            message_in_group("m-2", "a", &dies),
            message_in_group("m-3", "a", &order("a-3")),
        ]))
        .await;
    assert!(report.is_complete());
    assert_eq!(effects.placed(), ["a-1", "a-2", "a-3"], "once each, and in order");
}

/// A pipe is told the records, and the event source mapping a checkpoint, after which a processed one is replayed.
#[tokio::test]
async fn processed_records_of_a_shard_are_not_processed_again_and_each_key_keeps_its_order() {
    for is_piped in [false, true] {
        let effects = Effects::new();
        let world = World::of(effects.of(every_source())).await;
        let event = kinesis([
            (0, 1, "ann", order("ann-1")),
            (0, 2, "bob", fails("bob-1", 1)),
            (0, 3, "ann", order("ann-2")),
            (0, 4, "bob", order("bob-2")),
        ]);
        let report = world.send(&if is_piped { in_a_pipe(event) } else { event }).await;
        assert!(report.is_complete());
        let placed = effects.placed();
        let of = |key: &'static str| placed.iter().filter(move |order| order.starts_with(key));
        assert!(of("ann").eq(["ann-1", "ann-2"]) && of("bob").eq(["bob-1", "bob-2"]), "{placed:?}");
        let replayed = report.records().filter(|record| record.outcome.as_str() == "replayed");
        assert_eq!(replayed.count(), usize::from(!is_piped), "ann-2");
        let named = returned(&report.invocations[0].invocation.result);
        let start = if is_piped { "shardId-" } else { "4954" };
        assert!(named.len() == 2 && named.iter().all(|id| id.starts_with(start)), "{named:?}");
    }
}

#[tokio::test]
async fn halves_of_a_batch_find_the_record_that_kills_the_process() {
    let effects = Effects::new();
    let limits = StreamConfig {
        max_retries: 0,
        bisect: true,
        retry_delay: AFTER_THE_LEASE,
        ..StreamConfig::default()
    };
    let function = effects.of(every_source()).timeout(TIMEOUT);
    let world = World::with(function, |local| local.streams(limits)).await;
    let kills = order_with("bob-1", json!({ "delayMs": 600_000 }));
    // Its process dies each time, but not before the other record is done.
    let death = async {
        let mut deaths = 0;
        loop {
            let is_done = world.claims().iter().any(|claim| claim["status"]["S"] == "COMPLETED");
            if is_done && effects.starts("bob-1") > deaths {
                deaths += world.kill_in_flight();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let event = kinesis([(0, 1, "bob", kills), (0, 2, "ann", order("ann-1"))]);
    let report = tokio::select! {
        report = world.send(&event) => report,
        () = death => unreachable!("it does not end"),
    };
    assert_eq!(effects.placed(), ["ann-1"]);
    assert_eq!(report.dead_letters.len(), 1, "{:?}", history(&report));
}

/// In queue mode the broker acknowledges each record that the answer does not name.
#[tokio::test]
async fn in_queue_mode_records_that_were_not_started_are_not_lost() {
    let effects = Effects::new();
    let shared = StreamConfig { queue_mode: true, ..StreamConfig::default() };
    let world = World::with(effects.of(every_source()), |local| local.streams(shared)).await;
    let orders = vec![order("a-1"), fails("a-2", 1), order("a-3"), order("a-4")];
    let report = world.send(&kafka([("orders-0", orders)])).await;
    assert!(report.is_complete());
    assert_eq!(
        report.invocations[1].records.len(),
        3,
        "the failed record and those that waited for it"
    );
    assert_eq!(effects.placed(), ["a-1", "a-2", "a-3", "a-4"], "{:?}", history(&report));
}
