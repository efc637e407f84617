//! Records that kill, on a queue whose batches are mixed anew at each receive: how long the others wait, and how often
//! they are lost.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a failing test"
)]

use std::{fmt::Write as _, time::Duration};

use crate::{
    killers::{QUICK, SLOW, published},
    queue::{Queue, Receive},
};

/// How often one record was lost, at most, beside a killer that its queue gives up after so many receives. A process has
/// five invocations of ten records, which are mixed anew each time.
async fn lost_beside_a_killer(seed: u64, receives: u32) -> u32 {
    let mut random = Random(seed);
    let mut queue = Queue::new(50, &[0], QUICK);
    while queue.messages[0].receives < receives {
        let mut left: Vec<usize> = (1..queue.messages.len()).collect();
        left.retain(|at| !queue.messages[*at].is_gone);
        random.shuffle(&mut left);
        left.truncate(49);
        left.insert(random.below(left.len() as u64 + 1) as usize, 0);
        let invocations: Vec<Vec<usize>> = left.chunks(10).map(<[usize]>::to_vec).collect();
        queue.receive(&invocations, false).await;
        (0..30).for_each(|_| queue.add(false));
    }
    queue.messages[0].is_gone = true;
    let left: Vec<usize> = (1..queue.messages.len()).collect();
    for _ in 0..3 {
        queue.receive(std::slice::from_ref(&left), false).await;
    }
    queue.result().expect("one is not done").1
}

#[tokio::test]
async fn in_a_process_with_five_invocations_a_killer_takes_a_record_along_a_few_times() {
    for (receives, most) in [(5, 4), (10, 4)] {
        let mut lost = 0;
        for seed in 0..20 {
            lost = lost.max(lost_beside_a_killer(seed, receives).await);
        }
        assert_eq!(lost, most, "given up after {receives} receives");
    }
}

/// The longest waits on a busy queue: how many receives in a row, without those that were throttled, a record was not tried.
#[derive(Debug, Default)]
struct Waits {
    others: u32,
    suspects: u32,
}

/// A queue that always has records for five workers, who take ten at random; three of fifty records that a death touched
/// kill. At some of the receives nothing runs: their invocations are throttled.
async fn busy(seed: u64, takes: Duration, throttled: u64) -> Waits {
    let (workers, batch, rounds, hidden) = (5, 10, 80_u32, 6);
    let mut random = Random(seed);
    let mut queue = Queue::new(300, &[0, 1, 2], takes);
    for group in 0..5 {
        queue.receive(&[(10 * group..10 * group + 10).collect()], true).await;
    }
    for at in 0..50 {
        assert_eq!(queue.became(at).await, Receive::Lost);
    }
    let mut visible = vec![0_u32; 300];
    // By record: how often it was not tried in a row, and whether it is a suspect.
    let mut waits = vec![(0_u32, false); 300];
    waits[..50].fill((0, true));
    let mut longest = Waits::default();
    for round in 0..rounds {
        for _ in 0..30 {
            queue.add(false);
            visible.push(round);
            waits.push((0, false));
        }
        let mut open: Vec<usize> = (0..visible.len())
            .filter(|at| visible[*at] <= round && !queue.messages[*at].is_gone)
            .collect();
        random.shuffle(&mut open);
        for records in open.chunks(batch).take(workers) {
            records.iter().for_each(|at| visible[*at] = round + hidden);
            let is_throttled = random.below(100) < throttled;
            match is_throttled {
                true => queue.receive_in_vain(records),
                false => queue.receive(&[records.to_vec()], false).await,
            }
            for at in records {
                let (wait, is_suspect) = &mut waits[*at];
                match queue.became(*at).await {
                    Receive::Untried => *wait += u32::from(!is_throttled),
                    Receive::Lost => (*wait, *is_suspect) = (0, true),
                    Receive::Done => *wait = 0,
                }
                let longest = if *is_suspect { &mut longest.suspects } else { &mut longest.others };
                *longest = (*longest).max(*wait);
            }
        }
        // Given up by their queue after so many receives.
        for killer in &mut queue.messages[..3] {
            if killer.receives >= 30 {
                killer.is_gone = true;
            }
        }
    }
    longest
}

/// Numbers that look random (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    fn shuffle(&mut self, all: &mut [usize]) {
        for at in (1..all.len()).rev() {
            let other = self.below(at as u64 + 1) as usize;
            all.swap(at, other);
        }
    }
}

#[tokio::test]
async fn the_guide_says_how_long_records_wait_on_a_busy_queue() {
    let mut table = String::from(
        "| handlers take | throttled | other records | suspects |\n|--:|--:|--:|--:|\n",
    );
    for (takes, throttled) in [(QUICK, 0), (SLOW, 0), (SLOW, 30)] {
        let mut longest = Waits::default();
        for seed in 0..10 {
            let waits = busy(seed, takes, throttled).await;
            longest.others = longest.others.max(waits.others);
            longest.suspects = longest.suspects.max(waits.suspects);
        }
        let Waits { others, suspects } = longest;
        let takes = takes.as_secs_f32();
        writeln!(table, "| {takes} s | {throttled} % | {others} | {suspects} |").unwrap();
    }
    published(&table);
}
