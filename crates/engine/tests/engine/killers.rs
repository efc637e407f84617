//! Records that kill their process, among others of one queue: after how many receives the others are done.
//!
//! `cargo test -p lambda-idempotency-engine --test engine killers -- --nocapture` prints the tables that the guide
//! publishes; each run compares them.

use std::{fmt::Write as _, time::Duration};

use lambda_idempotency_core::{outcome::Outcome, record::Status};

use crate::{
    quarantine::SECOND,
    queue::{Queue, Receive},
    support::{failing, ok, rec, slow},
};

const QUICK: Duration = Duration::from_millis(100);
/// More than half of an invocation: there is time for one round of handlers.
const SLOW: Duration = Duration::from_secs(16);

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

/// After how many receives all others are done, and how often one was called in vain, whichever the killers are. Without
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
fn published(table: &str) {
    println!("{table}");
    assert!(guide().contains(table), "the guide has another table than this:\n{table}");
}

#[tokio::test]
async fn the_guide_says_after_how_many_receives_the_others_are_done() {
    let mut table = String::from(
        "| batch | handlers take | no killer, one death | 1 killer | 2 killers | 3 killers |\n\
         |--:|--:|--:|--:|--:|--:|\n",
    );
    for records in [10, 100] {
        for takes in [QUICK, SLOW] {
            write!(table, "| {records} | {} s |", takes.as_secs_f32()).unwrap();
            for killers in 0..=3 {
                let (receives, _) = worst(records, killers, takes, true).await;
                write!(table, " {receives} |").unwrap();
            }
            table.push('\n');
        }
    }
    published(&table);
}

#[tokio::test]
async fn of_ten_records_the_others_are_called_in_vain_twice_at_most() {
    for (killers, quick, slow) in [(0, (2, 1), (3, 1)), (1, (4, 2), (10, 2)), (2, (6, 2), (13, 2))]
    {
        assert_eq!(worst(10, killers, QUICK, true).await, quick, "{killers} killers");
        assert_eq!(worst(10, killers, SLOW, true).await, slow, "{killers} killers");
    }
}

/// The process dies at the first receive, or at the first two or three, and nothing kills it.
#[tokio::test]
async fn after_deaths_from_outside_ten_records_are_done_after_so_many_receives() {
    for (deaths, quick, slow) in [(&[1_u32][..], 2, 3), (&[1, 2], 3, 6), (&[1, 2, 3], 4, 13)] {
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

/// Eight others come to killers that were received so often before.
#[tokio::test]
async fn killers_that_were_received_before_keep_others_for_two_receives() {
    for before in [&[1_usize][..], &[2], &[1, 2], &[2, 3], &[3, 4], &[3, 4, 5, 6]] {
        for takes in [QUICK, SLOW] {
            let killers: Vec<usize> = (0..before.len()).collect();
            let mut queue = Queue::new(before.len(), &killers, takes);
            for round in 0..6 {
                let early = killers.iter().copied().filter(|at| before[*at] >= 6 - round);
                let alone: Vec<Vec<usize>> = early.map(|at| vec![at]).collect();
                for killer in alone {
                    queue.receive(&[killer], false).await;
                }
            }
            (0..8).for_each(|_| queue.add(false));
            let (receives, _) = queue.all_together(&[], 60).await.expect("one starves");
            assert!(receives <= 2, "{before:?} {takes:?}: {receives}");
        }
    }
}

/// A new record comes at each receive of two killers that were redriven.
#[tokio::test]
async fn redriven_killers_keep_others_for_two_receives() {
    for before in [[1, 4], [3, 2], [5, 5]] {
        let mut queue = Queue::new(2, &[0, 1], QUICK);
        for (at, deaths) in before.into_iter().enumerate() {
            for _ in 0..deaths {
                queue.receive(&[vec![at]], false).await;
            }
            queue.messages[at].receives = 0;
        }
        for _ in 0..6 {
            queue.add(false);
            let all = (0..queue.messages.len()).collect();
            queue.receive(&[all], false).await;
        }
        queue.receive(&[(0..queue.messages.len()).collect()], false).await;
        let (receives, _) = queue.result().expect("one starves");
        assert!(receives <= 2, "{before:?}: {receives}");
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
                    queue.receive(&[all.clone()], false).await;
                }
            }
            let (receives, calls) = queue.result().unwrap();
            let vain = (in_vain & ((1 << receives) - 1)).count_ones();
            let said =
                format!("{in_vain:b}, {killer}: done at {receives}, called {calls} times in vain");
            assert!(receives <= 5 + vain && calls <= 3, "{said}");
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
async fn in_order_groups_two_killers_do_not_keep_a_record_of_another_group_for_ever() {
    let queue = in_groups(&["0", "0", "1", "1", "2"], &[0, 4], QUICK);
    let (receives, _) = queue.all_together(&[], 60).await.expect("one is never started");
    assert!(receives <= 7, "{receives}");
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

/// How often one record was lost, at most, beside a killer that its queue gives up after so many receives. A process has
/// five invocations of ten records, which are mixed anew each time.
async fn lost_beside_a_killer(seed: u64, receives: u32) -> u32 {
    let mut random = Random(seed);
    let mut queue = Queue::new(50, &[0], QUICK);
    while queue.messages[0].receives < receives {
        let mut left: Vec<usize> = (1..queue.messages.len()).collect();
        left.retain(|at| queue.messages[*at].done_at.is_none());
        random.shuffle(&mut left);
        left.truncate(49);
        left.insert(random.below(left.len() as u64 + 1) as usize, 0);
        let invocations: Vec<Vec<usize>> = left.chunks(10).map(<[usize]>::to_vec).collect();
        queue.receive(&invocations, false).await;
        (0..30).for_each(|_| queue.add(false));
    }
    queue.messages[0].done_at = Some(receives);
    let left: Vec<usize> = (1..queue.messages.len()).collect();
    for _ in 0..3 {
        queue.receive(&[left.clone()], false).await;
    }
    queue.result().expect("one is not done").1
}

#[tokio::test]
async fn in_a_process_with_five_invocations_a_killer_takes_a_record_along_a_few_times() {
    for (receives, most) in [(5, 4), (10, 6)] {
        let mut lost = 0;
        for seed in 0..20 {
            lost = lost.max(lost_beside_a_killer(seed, receives).await);
        }
        assert_eq!(lost, most, "given up after {receives} receives");
    }
}

/// As often as the killer, if the same records come with it each time.
#[tokio::test]
async fn in_a_process_with_five_invocations_a_killer_takes_a_record_along_at_each_of_its_receives()
{
    let mut queue = Queue::new(10, &[0], QUICK);
    for _ in 0..5 {
        let invocations: Vec<Vec<usize>> = (0..5).map(|n| vec![2 * n, 2 * n + 1]).collect();
        queue.receive(&invocations, false).await;
    }
    queue.messages[0].done_at = Some(0);
    queue.receive(&[(0..10).collect()], false).await;
    assert_eq!(queue.result(), Some((6, 5)), "given up after five receives");
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
            .filter(|at| visible[*at] <= round && queue.messages[*at].done_at.is_none())
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
                killer.done_at = Some(killer.receives);
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

/// There is time for one round, and a suspect for which a busy queue left no time kills before the others are claimed.
#[tokio::test]
async fn a_record_that_meets_a_killer_that_waited_is_done_at_its_next_receive() {
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
    for _ in 0..2 {
        queue.receive(&[vec![0, 1, 2]], false).await;
    }
    assert!(queue.result().is_some_and(|(receives, _)| receives <= 2));
}

/// As each call of `run` is: a batch of one, without a count of receives.
#[tokio::test]
async fn a_key_that_has_lost_so_many_workers_in_a_row_fails_permanently() {
    let mut queue = Queue::new(1, &[0], QUICK);
    queue.counts = false;
    queue.world.policy.max_lost_attempts = Some(3);
    for _ in 0..6 {
        queue.receive(&[vec![0]], false).await;
    }
    let label = queue.messages[0].label;
    assert_eq!(queue.calls(0), 3);
    assert_eq!(queue.world.deliver(vec![ok(label)]).await, ["permanently_failed"]);
    let stored = queue.world.stored(label).await.unwrap();
    assert_eq!(
        (stored.status, stored.error_type.as_deref()),
        (Status::PermanentlyFailed, Some("lost attempts"))
    );
    assert_eq!(stored.lost_attempts, 3);
}

#[tokio::test]
async fn an_attempt_that_was_heard_of_ends_a_row_of_losses() {
    let mut queue = Queue::new(1, &[], QUICK);
    queue.world.policy.max_lost_attempts = Some(2);
    let label = queue.messages[0].label;
    for _ in 0..3 {
        queue.receive(&[vec![0]], true).await;
        assert_eq!(queue.world.deliver(vec![failing(label)]).await, ["failed"]);
    }
    assert_eq!(queue.world.deliver(vec![ok(label)]).await, ["executed"]);
}

/// The first delivery says what happened; it is put aside where the user said so, and the others go on.
#[tokio::test]
async fn a_record_that_is_given_up_is_put_aside() {
    let mut queue = Queue::new(1, &[0], QUICK);
    queue.world.policy.max_lost_attempts = Some(2);
    for _ in 0..2 {
        queue.receive(&[vec![0]], false).await;
    }
    let label = queue.messages[0].label;
    let given_up = rec(label, |_, _| async { panic!("it was called") });
    let outcomes =
        queue.world.deliver(vec![given_up.aside().receives(3), ok("b").receives(3)]).await;
    assert_eq!(outcomes, ["diverted", "executed"]);
}

#[tokio::test]
async fn the_delivery_that_gives_a_key_up_says_why() {
    let mut queue = Queue::new(1, &[0], QUICK);
    queue.world.policy.max_lost_attempts = Some(1);
    queue.receive(&[vec![0]], false).await;
    let label = queue.messages[0].label;
    let outcomes = queue.world.clock.drive(queue.world.invoke(vec![ok(label)])).await;
    let [Outcome::Failed { failure, permanent: true, .. }] = &*outcomes else {
        panic!("{outcomes:?}")
    };
    assert!(failure.message().contains("`max_lost_attempts`"), "{}", failure.message());
    queue.world.ledger.assert_never(label);
}
