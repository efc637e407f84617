//! Every file in `events/` behaves as `events/README.md` says.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lambda_idempotency_local::{Disposition, InvocationResult, Source};
use lambda_idempotency_tests::function;

use crate::support::{World, returned};

/// The answer of the first invocation of a sample.
enum First {
    /// The messages with these ids, or with ids that begin so, are returned to the queue.
    Returns(&'static [&'static str]),
    /// The answer is `null`.
    Null,
    Fails,
}

use First::{Fails, Null, Returns};

/// A sample: its file, the first answer, the orders that are placed, and how many records end in a dead-letter queue.
type Sample = (&'static str, First, &'static [&'static str], usize);

const SAMPLES: &[Sample] = &[
    ("eventbridge-missing-key.json", Fails, &[], 1),
    ("eventbridge.json", Null, &["o-1501"], 0),
    // The answer names the checkpoint until the stream gives up all records from there on, including the
    // third, which was placed.
    ("kinesis-bad-record.json", Returns(&[CHECKPOINT]), &["o-3101", "o-3102"], 2),
    ("kinesis.json", Returns(&[]), &["o-3001", "o-3002", "o-3003"], 0),
    ("sns-bad-body.json", Fails, &[], 1),
    ("sns.json", Null, &["o-1401"], 0),
    ("sqs-bad-body.json", Returns(&["0bd47e27"]), &["o-1201", "o-1203"], 1),
    ("sqs-duplicates.json", Returns(&[]), &["o-1101", "o-1102", "o-1103", "o-1104"], 0),
    ("sqs-empty-batch.json", Returns(&[]), &[], 0),
    ("sqs-failing-record.json", Returns(&["1fe70fdb"]), &["o-1301", "o-1303"], 1),
    ("sqs-missing-key.json", Returns(&["3b6ad9d4", "83a56ae2"]), &["o-1251"], 2),
    // The whole batch is returned each time, until both its messages are dead-lettered.
    ("sqs-no-message-id.json", Fails, &["o-1351"], 2),
    ("sqs.json", Returns(&[]), &["o-1001"], 0),
    ("unknown.json", Fails, &[], 0),
];
const CHECKPOINT: &str = "49640000000000000000000000000000000000000000000000000012";

/// A sample for another function than the orders function: its binary, and the orders that are placed.
type Other = (&'static str, &'static str, &'static [&'static str]);

const EVERY_SOURCE: &str = env!("CARGO_BIN_EXE_every_source");

const OTHERS: &[Other] = &[
    ("sqs-fifo.json", EVERY_SOURCE, &["o-4001", "o-4002"]),
    ("scheduler.json", EVERY_SOURCE, &["o-4101"]),
    ("dynamodb.json", EVERY_SOURCE, &["o-4201", "o-4202"]),
    ("documentdb.json", EVERY_SOURCE, &["o-4301"]),
    ("kafka.json", EVERY_SOURCE, &["o-4401", "o-4402"]),
    ("s3.json", EVERY_SOURCE, &["o-4501"]),
    ("activemq.json", EVERY_SOURCE, &["o-4601", "o-4602"]),
    ("rabbitmq.json", EVERY_SOURCE, &["o-4701", "o-4702"]),
    ("pipe.json", EVERY_SOURCE, &["o-4801", "o-4802"]),
    ("http.json", env!("CARGO_BIN_EXE_http_orders"), &["o-4901"]),
];

fn events() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../events")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(events().join(file)).unwrap()
}

/// One function gets all events: no event may affect the next.
#[tokio::test]
async fn every_sample_event_has_the_outcome_in_its_readme() {
    let world = World::new().await;
    let mut placed = BTreeSet::new();
    for (file, first, orders, dead) in SAMPLES {
        let claimed = world.claims().len();
        let report = world.deliver(&text(file)).await.unwrap();
        let result = &report.invocations[0].invocation.result;
        match first {
            Returns(ids) => {
                let returned = returned(result);
                let same = returned.len() == ids.len()
                    && returned.iter().zip(*ids).all(|(id, start)| id.starts_with(start));
                assert!(same, "{file}: {returned:?}");
            }
            Null => assert_eq!(*result, InvocationResult::Response(serde_json::Value::Null)),
            Fails => {
                let failed = matches!(result, InvocationResult::FunctionError { .. });
                assert!(failed, "{file}: {result}");
            }
        }
        assert_eq!(report.dead_letters.len(), *dead, "{file}");
        let is_lost = *file == "unknown.json"; // a direct caller gets the error, once
        assert_eq!(report.dispositions(Disposition::Error), usize::from(is_lost), "{file}");
        if *file == "sns-bad-body.json" {
            let dead = &report.dead_letters[0];
            assert_eq!((dead.source, dead.receive_count), (Source::Sns, 3));
            assert_eq!(world.claims().len(), claimed, "what cannot be processed claims no key");
        }

        placed.extend(orders.iter().copied());
        world.assert_placed_once(placed.iter().copied());

        // Delivered again, nothing is placed again.
        let again = world.deliver(&text(file)).await.unwrap();
        assert_eq!(again.dead_letters.len(), *dead, "{file}, again");
        world.assert_placed_once(placed.iter().copied());
    }
}

/// The sources that the orders function does not have. A direct invocation is known by its request id, so the sample
/// `direct.json` is new work each time.
#[tokio::test]
async fn every_other_source_has_a_sample_that_is_placed_once() {
    for (file, binary, placed) in OTHERS {
        let world = World::of(function(binary)).await;
        for _ in 0..2 {
            let report = world.deliver(&text(file)).await.unwrap();
            assert!(report.is_complete(), "{file}: {:?}", world.lines());
            world.assert_placed_once(placed.iter().copied());
        }
    }
    let world = World::of(function(EVERY_SOURCE)).await;
    let report = world.deliver(&text(DIRECT)).await.unwrap();
    assert!(report.is_complete(), "{:?}", world.lines());
    world.assert_placed_once(["o-5001"]);
}

const DIRECT: &str = "direct.json";

#[test]
fn every_sample_event_is_tested() {
    let known = SAMPLES.iter().map(|(file, ..)| *file);
    let known = known.chain(OTHERS.iter().map(|(file, ..)| *file)).chain([DIRECT]);
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    let files = std::fs::read_dir(events()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let present: BTreeSet<_> = names.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(known, present);
}
