//! Every file in `events/` behaves as `events/README.md` says.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lambda_idempotency_local::{Disposition, InvocationResult, Source};
use lambda_idempotency_tests::function;

use crate::support::{World, returned};

/// The expected result of a sample.
struct Sample {
    file: &'static str,
    /// The answer of its first invocation.
    first: First,
    placed: &'static [&'static str],
    /// How many records end in a dead-letter queue.
    dead: usize,
}

enum First {
    /// The messages with these ids, or with ids that begin so, are returned to the queue.
    Returns(&'static [&'static str]),
    /// The answer is `null`.
    Null,
    Fails,
}

use First::{Fails, Null, Returns};

const SAMPLES: &[Sample] = &[
    Sample { file: "eventbridge-missing-key.json", first: Fails, placed: &[], dead: 1 },
    Sample { file: "eventbridge.json", first: Null, placed: &["o-1501"], dead: 0 },
    // The answer names the checkpoint until the stream gives up all records from there on, including the
    // third, which was placed.
    Sample {
        file: "kinesis-bad-record.json",
        first: Returns(&["49640000000000000000000000000000000000000000000000000012"]),
        placed: &["o-3101", "o-3102"],
        dead: 2,
    },
    Sample {
        file: "kinesis.json",
        first: Returns(&[]),
        placed: &["o-3001", "o-3002", "o-3003"],
        dead: 0,
    },
    Sample { file: "sns-bad-body.json", first: Fails, placed: &[], dead: 1 },
    Sample { file: "sns.json", first: Null, placed: &["o-1401"], dead: 0 },
    Sample {
        file: "sqs-bad-body.json",
        first: Returns(&["0bd47e27"]),
        placed: &["o-1201", "o-1203"],
        dead: 1,
    },
    Sample {
        file: "sqs-duplicates.json",
        first: Returns(&[]),
        placed: &["o-1101", "o-1102", "o-1103", "o-1104"],
        dead: 0,
    },
    Sample { file: "sqs-empty-batch.json", first: Returns(&[]), placed: &[], dead: 0 },
    Sample {
        file: "sqs-failing-record.json",
        first: Returns(&["1fe70fdb"]),
        placed: &["o-1301", "o-1303"],
        dead: 1,
    },
    Sample {
        file: "sqs-missing-key.json",
        first: Returns(&["3b6ad9d4", "83a56ae2"]),
        placed: &["o-1251"],
        dead: 2,
    },
    // The whole batch is returned each time, until both its messages are dead-lettered.
    Sample { file: "sqs-no-message-id.json", first: Fails, placed: &["o-1351"], dead: 2 },
    Sample { file: "sqs.json", first: Returns(&[]), placed: &["o-1001"], dead: 0 },
    Sample { file: "unknown.json", first: Fails, placed: &[], dead: 0 },
];

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
    for sample in SAMPLES {
        let file = sample.file;
        let report = world.deliver(&text(file)).await.unwrap();
        let result = &report.invocations[0].invocation.result;
        match &sample.first {
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
        assert_eq!(report.dead_letters.len(), sample.dead, "{file}");
        let is_lost = sample.file == "unknown.json"; // a direct caller gets the error, once
        assert_eq!(report.dispositions(Disposition::Lost), usize::from(is_lost), "{file}");

        placed.extend(sample.placed.iter().copied());
        world.assert_placed_once(placed.iter().copied());

        // Delivered again, nothing is placed again.
        let again = world.deliver(&text(file)).await.unwrap();
        assert_eq!(again.dead_letters.len(), sample.dead, "{file}, again");
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
    let known = SAMPLES.iter().map(|sample| sample.file);
    let known = known.chain(OTHERS.iter().map(|(file, ..)| *file)).chain([DIRECT]);
    let known: BTreeSet<_> = known.map(str::to_owned).collect();
    let files = std::fs::read_dir(events()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let present: BTreeSet<_> = names.filter(|name| name.ends_with(".json")).collect();
    assert_eq!(known, present);
}

#[tokio::test]
async fn a_bad_notification_is_tried_three_times_and_kept() {
    let world = World::new().await;
    let report = world.deliver(&text("sns-bad-body.json")).await.unwrap();
    assert_eq!(report.invocations.len(), 3);
    let dead = &report.dead_letters[0];
    assert_eq!((dead.source, dead.receive_count), (Source::Sns, 3));
    assert!(world.claims().is_empty(), "a record that cannot be processed claims no key");
}
