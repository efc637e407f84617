//! Orders of an operation that is a mutex: those of one key are placed one after the other, by several processes of
//! which some are killed, and each message places its order.

use std::{collections::BTreeSet, time::Duration};

use lambda_idempotency_local::{FunctionConfig, Outcome, SqsConfig};
use lambda_idempotency_tests::events::{batch, batch_of, message, order, order_with};
use serde_json::json;

use crate::{
    every_source::Effects,
    support::{TIMEOUT, World, outcomes, scripted_orders},
};

fn function() -> FunctionConfig {
    scripted_orders().timeout(TIMEOUT).env("SCRIPTED_MUTEX", "1")
}

/// Forty messages of one key in eight processes, one of which is killed while its handler works.
#[tokio::test]
async fn processes_work_one_after_the_other_also_if_one_is_killed() {
    let effects = Effects::new();
    let function = effects.of(function());
    let queue = SqsConfig {
        visibility: Some(Duration::from_millis(150)),
        max_receive_count: 1000,
        batch_size: 5,
    };
    let world = World::with(function, |local| local.sandboxes(8).sqs(queue)).await;
    let slow = order_with("o-1", json!({ "delayMs": 20 }));
    let event = batch((0..40).map(|number| message(&format!("m-{number}"), &slow)));
    let killed = async {
        while effects.lines().lines().count() <= 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        world.kill_in_flight()
    };
    let (report, killed) = tokio::join!(world.send(&event), killed);
    assert!(killed > 0 && report.is_complete(), "{killed}: {:?}", outcomes(&report));
    assert!(report.count(&Outcome::Crashed) > 0, "{:?}", outcomes(&report));
    let (mut at_work, mut placed): (Option<(String, String)>, _) = (None, BTreeSet::new());
    let mut lost = 0;
    for line in effects.lines().lines() {
        let words: Vec<_> = line.split(' ').collect();
        let (starts, message, process) =
            (words[0] == "start", words[2].to_owned(), words[3].to_owned());
        match (starts, at_work.take()) {
            (true, before) => {
                // A handler that has started and not ended was killed, with its whole process.
                lost += usize::from(before.is_some());
                let is_dead = |(_, other): &(String, String)| *other != process;
                assert!(before.as_ref().is_none_or(is_dead), "{process} works twice at a time");
                at_work = Some((message, process));
            }
            (false, before) => {
                assert_eq!(before, Some((message.clone(), process)), "it worked beside another");
                placed.insert(message);
            }
        }
    }
    assert_eq!(placed.len(), 40, "each message has its effect");
    assert!(lost <= killed, "{lost} handlers ended without an effect, and {killed} were killed");
    assert_eq!(world.claims(), [] as [serde_json::Value; 0], "nothing is left");
}

#[tokio::test]
async fn copies_and_duplicates_are_placed_again_and_leave_nothing() {
    let world = World::of(function()).await;
    let event = batch_of(["o-1", "o-1", "o-2"].map(order));
    for _ in 0..2 {
        assert_eq!(outcomes(&world.send(&event).await), ["executed"; 3]);
    }
    assert_eq!(world.placed().into_values().collect::<Vec<_>>(), [4, 2]);
    assert!(world.claims().is_empty());
}
