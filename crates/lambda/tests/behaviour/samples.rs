//! Invokes a function twice with every sample of an AWS event.
//!
//! For each sample, `events/expected.txt` has the records, their identities, the number of handler
//! calls in both deliveries together, and the answer to the second delivery.

use std::fmt::Write as _;

use lambda_idempotency::{Call, Function, Operation, keys::inspect};
use serde_json::Value;

use crate::support::{World, diagnostic, every_source};

/// A function of all sources except `.invoke(..)`, which takes any event.
pub(crate) fn everything(world: &World) -> Function {
    let ledger = world.ledger.clone();
    let handler = move |_: Value, call: Call| {
        ledger.record(call.record().to_string(), "");
        std::future::ready(Ok::<_, std::io::Error>(()))
    };
    let function = world.idempotency().function();
    every_source!(function, |name: &str| Operation::new(name), handler, |source| source)
        .build()
        .unwrap()
}

/// The folders of the samples for this function; the tests in `http` use those of HTTP.
const FOLDERS: [&str; 3] = ["", "aws_lambda_events", "own"];

pub(crate) fn samples() -> Vec<(String, String)> {
    let mut samples = Vec::new();
    for folder in FOLDERS {
        let path = format!("{}/tests/events/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let name = path.file_name().unwrap().to_str().unwrap();
                let event = std::fs::read_to_string(&path).unwrap();
                samples.push((format!("{folder}/{name}").replacen("//", "/", 1), event));
            }
        }
    }
    samples.sort();
    samples
}

#[tokio::test]
async fn every_sample_is_read_as_expected() {
    let mut found = String::new();
    for (name, event) in samples() {
        writeln!(found, "{}", name.trim_start_matches('/')).unwrap();
        for record in inspect::event(&event, None).unwrap() {
            let identity = match &record.identity {
                Ok(parts) => parts.join(" | "),
                Err(refused) => refused.to_string(),
            };
            writeln!(found, "  {}: {identity}", record.source).unwrap();
        }
        let world = World::new();
        let function = everything(&world);
        let _ = world.invoke_raw(&function, &event).await;
        let answer = match world.invoke_raw(&function, &event).await {
            Ok(answer) => answer.to_string(),
            Err(error) => diagnostic(error).0,
        };
        writeln!(found, "  {} called, {answer}", world.ledger.total()).unwrap();
    }
    let path = format!("{}/tests/events/expected.txt", env!("CARGO_MANIFEST_DIR"));
    let expected = std::fs::read_to_string(path).unwrap();
    let differences: Vec<_> = found.lines().zip(expected.lines()).filter(|(a, b)| a != b).collect();
    assert!(found == expected, "{differences:#?}\n{found}");
}
