//! Records that kill their process, among others of one queue: after how many receives the others are acknowledged.
//!
//! `cargo test -p lambda-idempotency-engine --test engine killers -- --nocapture` prints the tables that the guide
//! publishes; each run compares them.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a failing test"
)]

use std::{fmt::Write as _, time::Duration};

use crate::{
    quarantine::SECOND,
    queue::Queue,
    support::{ok, slow},
};

pub(crate) const QUICK: Duration = Duration::from_millis(100);
/// More than half of an invocation: there is time for one round of handlers.
pub(crate) const SLOW: Duration = Duration::from_secs(16);

/// All sets of so many of these records; of large batches some.
fn sets(records: usize, size: usize) -> Vec<Vec<usize>> {
    let mut sets = vec![vec![]];
    for _ in 0..size {
        let longer = |set: &Vec<usize>| -> Vec<Vec<usize>> {
            let from = set.last().map_or(0, |last| last + 1);
            (from..records).map(|next| [&set[..], &[next]].concat()).collect()
        };
        sets = sets.iter().flat_map(longer).collect();
    }
    let step = if records > 10 { sets.len().div_ceil(12) } else { 1 };
    sets.into_iter().step_by(step).collect()
}

/// After how many receives all others are acknowledged, and how often one was called in vain, whichever the killers are. Without
/// killers the process dies once from outside.
async fn worst(records: usize, killers: usize, takes: Duration, counts: bool) -> (u32, u32) {
    let mut worst = (0, 0);
    for kills in sets(records, killers) {
        let mut queue = Queue::new(records, &kills, takes);
        queue.counts = counts;
        let outside: &[u32] = if killers == 0 { &[1] } else { &[] };
        let result = queue.all_together(outside, 150).await;
        let (receives, calls) =
            result.unwrap_or_else(|| panic!("{kills:?} of {records} starve one"));
        worst = (worst.0.max(receives), worst.1.max(calls));
    }
    worst
}

fn guide() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../lambda/src/guide/failure_modes.md");
    std::fs::read_to_string(path).unwrap()
}

/// Prints a table, and compares it with the guide's.
pub(crate) fn published(table: &str) {
    println!("{table}");
    assert!(guide().contains(table), "the guide has another table than this:\n{table}");
}

#[tokio::test]
async fn the_guide_says_after_how_many_receives_the_others_are_acknowledged() {
    let mut table = String::from(
        "| batch | handlers take | no killer, one death | 1 killer | 2 killers | 3 killers |\n\
         |--:|--:|--:|--:|--:|--:|\n",
    );
    for records in [10, 100] {
        for takes in [QUICK, SLOW] {
            write!(table, "| {records} | {} s |", takes.as_secs_f32()).unwrap();
            for killers in 0..=3 {
                let (receives, calls) = worst(records, killers, takes, true).await;
                let is_few = records > 10 || calls <= [1, 2, 2, 2][killers];
                assert!(is_few, "{killers} of {records}: called in vain {calls} times");
                write!(table, " {receives} |").unwrap();
            }
            table.push('\n');
        }
    }
    published(&table);
}

/// The process dies at the first receive, or at the first two or three, and nothing kills it.
#[tokio::test]
async fn after_deaths_from_outside_ten_records_are_done_after_so_many_receives() {
    for (deaths, quick, slow) in [(&[1_u32][..], 2, 2), (&[1, 2], 3, 12), (&[1, 2, 3], 4, 13)] {
        for (takes, receives) in [(QUICK, quick), (SLOW, slow)] {
            let result = Queue::new(10, &[], takes).all_together(deaths, 60).await;
            assert_eq!(
                result.map(|(receives, _)| receives),
                Some(receives),
                "{deaths:?}, {takes:?}"
            );
        }
    }
}

/// As in streams without an order. One group at least is done at each receive.
#[tokio::test]
async fn where_receives_are_not_counted_the_others_are_done_as_well() {
    for killers in 0..=2 {
        for takes in [QUICK, SLOW] {
            let (receives, calls) = worst(10, killers, takes, false).await;
            assert!(receives <= 14 && calls <= 2, "{killers}: {receives}, {calls}");
        }
    }
}

/// Nothing waits for the record that kills, and it waits for nothing without end: whether receives are counted, in order
/// groups, on a busy queue, if some receives are throttled, and where a source delivers what is done for as long as one
/// record of its batch is returned.
#[tokio::test]
async fn a_record_that_kills_starts_again_and_again() {
    for (counts, is_whole, in_groups) in [
        (true, false, false),
        (true, false, true),
        (true, true, false),
        (true, true, true),
        (false, true, false),
        (false, true, true),
    ] {
        let mut queue = Queue::new(4, &[2], QUICK);
        (queue.counts, queue.is_whole) = (counts, is_whole);
        for (message, group) in queue.messages.iter_mut().zip(["0", "1", "1", "0"]) {
            message.group = in_groups.then_some(group);
        }
        let (mut calls, mut waited) = (0, 0);
        for receive in 0..40 {
            queue.add(false);
            let all: Vec<usize> = (0..queue.messages.len()).collect();
            if receive % 5 == 4 {
                queue.receive_in_vain(&all);
                continue;
            }
            queue.receive(&[all], false).await;
            let before = std::mem::replace(&mut calls, queue.calls(2));
            waited = if calls > before { 0 } else { waited + 1 };
            assert!(waited <= 2, "counted: {counts}, whole: {is_whole}, groups: {in_groups}");
        }
    }
}

/// Receives in vain, of all ten, at any of the first five: throttled invocations, for example.
#[tokio::test]
async fn receives_in_vain_cost_the_others_few_receives() {
    for in_vain in 0..32_u32 {
        for killer in [0, 4, 9] {
            let mut queue = Queue::new(10, &[killer], QUICK);
            let all: Vec<usize> = (0..10).collect();
            for receive in 0.. {
                if queue.are_done() {
                    break;
                }
                if in_vain & (1 << receive) != 0 {
                    queue.receive_in_vain(&all);
                } else {
                    queue.receive(std::slice::from_ref(&all), false).await;
                }
            }
            let (receives, calls) = queue.result().unwrap();
            let vain = (in_vain & ((1 << receives) - 1)).count_ones();
            let said =
                format!("{in_vain:b}, {killer}: done at {receives}, called {calls} times in vain");
            assert!(receives <= 5 + 2 * vain && calls <= 3, "{said}");
        }
    }
}

/// Each order group has one record under way. Record `n` of the event is in the group that its number says.
fn in_groups(groups: &[&'static str], kills: &[usize], takes: Duration) -> Queue {
    let mut queue = Queue::new(groups.len(), kills, takes);
    for (message, group) in queue.messages.iter_mut().zip(groups) {
        message.group = Some(group);
    }
    queue
}

#[tokio::test]
async fn in_order_groups_every_record_that_may_start_is_started() {
    let mut table = String::from(
        "| order groups of 10 | handlers take | one death | 1 killer | 2 killers | 3 killers |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    let shapes = [
        ("two of 5", &["0", "0", "0", "0", "0", "1", "1", "1", "1", "1"]),
        ("3, 3, 3 and 1", &["0", "0", "0", "1", "1", "1", "2", "2", "2", "3"]),
    ];
    for (shape, groups) in shapes {
        for takes in [QUICK, SLOW] {
            write!(table, "| {shape} | {} s |", takes.as_secs_f32()).unwrap();
            for killers in 0..=3 {
                let mut worst = 0;
                for kills in sets(10, killers) {
                    let outside: &[u32] = if killers == 0 { &[1] } else { &[] };
                    let result = in_groups(groups, &kills, takes).all_together(outside, 100).await;
                    let result =
                        result.unwrap_or_else(|| panic!("{groups:?} {kills:?} starve one"));
                    worst = worst.max(result.0);
                }
                write!(table, " {worst} |").unwrap();
            }
            table.push('\n');
        }
    }
    published(&table);
}

/// There is time for one round, and a suspect for which a busy queue left no time kills before the others are claimed.
#[tokio::test]
async fn a_record_that_meets_a_killer_that_waited_is_acknowledged_after_four_receives() {
    let mut queue = Queue::new(1, &[0], QUICK);
    queue.world.policy.concurrency = 4;
    queue.receive(&[vec![0]], false).await;
    let label = queue.messages[0].label;
    let mut busy = vec![ok(label).receives(3)];
    busy.extend(["e", "f", "g", "h"].map(|label| slow(label, SLOW).receives(1)));
    assert_eq!(queue.world.deliver(busy).await[0], "returned");
    queue.messages[0].receives = 3;
    queue.world.clock.advance(10 * SECOND);
    queue.add(false);
    queue.add(false);
    for _ in 0..4 {
        queue.receive(&[vec![0, 1, 2]], false).await;
    }
    assert!(queue.result().is_some_and(|(receives, _)| receives <= 4));
}
