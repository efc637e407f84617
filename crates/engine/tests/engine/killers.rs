//! Records that kill their process, among others of one queue.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::{Either, select};
use lambda_idempotency_core::{clock::Clock as _, outcome::Outcome};

use crate::{
    quarantine::{LABELS, SECOND, dies_with},
    support::{World, ok, rec, slow},
};

/// A record that kills its process, among others of one queue.
struct Killing {
    world: World,
    /// How often each record was received, and how often its handler was begun.
    counts: Arc<Mutex<BTreeMap<&'static str, (u32, u32)>>>,
}

impl Killing {
    /// One invocation with those of these records that are not done yet. Says whether the process lived.
    async fn receive(
        &self,
        labels: &[&'static str],
        killer: &'static str,
        takes: Duration,
    ) -> bool {
        let dies = Arc::new(AtomicBool::new(false));
        let mut batch = Vec::new();
        for label in labels.iter().copied() {
            if self.world.ledger.executed(label) > 0 {
                continue;
            }
            let receives = {
                let mut counts = self.counts.lock().unwrap();
                let count = counts.entry(label).or_default();
                count.0 += 1;
                count.0
            };
            let (counts, dies) = (Arc::clone(&self.counts), Arc::clone(&dies));
            let record = rec(label, move |world: World, _| async move {
                counts.lock().unwrap().get_mut(label).unwrap().1 += 1;
                if label == killer {
                    dies.store(true, Ordering::Relaxed);
                    return std::future::pending().await;
                }
                world.clock.sleep(takes).await;
                Ok(())
            });
            batch.push(record.receives(receives));
        }
        let clock = self.world.clock.clone();
        let killed = async {
            while !dies.load(Ordering::Relaxed) {
                clock.sleep(Duration::from_millis(10)).await;
            }
        };
        let ended = async {
            let invocation = Box::pin(self.world.invoke(batch));
            match select(invocation, Box::pin(killed)).await {
                Either::Left((outcomes, _)) => {
                    !outcomes.iter().any(|one| matches!(one, Outcome::TimedOut { .. }))
                }
                Either::Right(_) => false,
            }
        };
        let lived = self.world.clock.drive(ended).await;
        self.world.clock.advance(40 * SECOND);
        lived
    }

    /// A receive in vain of those of these records that are not done yet: of their invocation nothing was
    /// begun.
    fn receive_in_vain(&self, labels: &[&'static str]) {
        let mut counts = self.counts.lock().unwrap();
        for label in labels.iter().copied().filter(|label| self.world.ledger.executed(label) == 0) {
            counts.entry(label).or_default().0 += 1;
        }
        drop(counts);
        self.world.clock.advance(40 * SECOND);
    }

    /// How often the others were received and begun at most.
    fn most(&self, killer: &'static str) -> (u32, u32) {
        self.world.ledger.assert_never(killer);
        let counts = self.counts.lock().unwrap();
        let others = counts.iter().filter(|(label, _)| **label != killer);
        others.fold((0, 0), |most, (label, (receives, begun))| {
            self.world.ledger.assert_once(label);
            (most.0.max(*receives), most.1.max(*begun))
        })
    }
}

/// Whichever it is: the others are done at their fourth receive at the latest, and were begun twice in
/// vain at most.
#[tokio::test]
async fn a_record_that_kills_its_process_among_ten_does_not_keep_the_others() {
    let mut most = (0, 0);
    for killer in LABELS {
        let killing = Killing { world: World::new(), counts: Arc::default() };
        for _ in 0..8 {
            killing.receive(&LABELS, killer, SECOND / 10).await;
        }
        let (receives, begun) = killing.most(killer);
        most = (most.0.max(receives), most.1.max(begun));
    }
    assert_eq!(most, (4, 3));
}

/// Receives in vain, of all ten, at any of the first six. Each costs one receive. Those before the first attempt
/// cost nothing else; two after it keep a group as large as it was once more.
#[tokio::test]
async fn receives_in_vain_cost_the_others_one_receive_each_and_one_more_if_there_are_two() {
    for in_vain in 0..64_u32 {
        let first = in_vain.trailing_ones();
        for killer in ["a", "d", "j"] {
            let killing = Killing { world: World::new(), counts: Arc::default() };
            let mut receive = 0;
            while LABELS.iter().any(|l| *l != killer && killing.world.ledger.executed(l) == 0) {
                if in_vain & (1 << receive) != 0 {
                    killing.receive_in_vain(&LABELS);
                } else {
                    killing.receive(&LABELS, killer, SECOND / 10).await;
                }
                receive += 1;
            }
            let (receives, begun) = killing.most(killer);
            let all = (in_vain & ((1 << receives) - 1)).count_ones();
            let more = u32::from(all.saturating_sub(first) >= 2);
            let said = format!("{in_vain:b}, {killer}: done at {receives}, begun {begun} times");
            assert!(receives <= 4 + all + more && begun <= 3 + more, "{said}");
        }
    }
}

/// It was received in vain before: then it goes first, and kills before they are claimed. At the next receive it
/// has been tried, and goes last.
#[tokio::test]
async fn who_is_received_with_a_killer_that_was_passed_over_is_done_at_the_next_receive() {
    for passed_over in 1..=4 {
        let killing = Killing { world: World::new(), counts: Arc::default() };
        killing.receive(&["k"], "k", SECOND).await;
        (0..passed_over).for_each(|_| killing.receive_in_vain(&["k"]));
        for known in [3, 3, 5, 5] {
            killing.receive(&["k", "a", "b", "c", "d"][..known], "k", SECOND).await;
        }
        assert_eq!(killing.most("k"), (2, 1), "passed over {passed_over} times");
    }
}

#[tokio::test]
async fn who_is_received_with_a_killer_for_which_a_busy_queue_left_no_time_is_done_at_the_next_receive()
 {
    let mut killing = Killing { world: World::new(), counts: Arc::default() };
    killing.world.policy.concurrency = 4;
    killing.receive(&["k"], "k", SECOND).await;
    let mut busy = vec![ok("k").receives(2)];
    busy.extend(["e", "f", "g", "h"].map(|label| slow(label, 16 * SECOND).receives(1)));
    assert_eq!(killing.world.deliver(busy).await[0], "returned");
    killing.counts.lock().unwrap().insert("k", (2, 1));
    killing.world.clock.advance(10 * SECOND);
    for _ in 0..2 {
        killing.receive(&["k", "a", "b"], "k", SECOND).await;
    }
    assert_eq!(killing.most("k"), (2, 1));
}

/// Two new records come with each of its receives. At every second one it goes before them.
#[tokio::test]
async fn who_is_received_with_a_redriven_record_that_kills_is_done_at_the_next_receive() {
    for before in 2..=5 {
        let killing = Killing { world: World::new(), counts: Arc::default() };
        for _ in 0..before {
            dies_with(&killing.world, &["a"]).await;
        }
        for known in [3, 5, 7, 9, 10, 10] {
            killing.receive(&LABELS[..known], "a", SECOND / 10).await;
        }
        assert_eq!(killing.most("a"), (2, 1), "{before} deaths before");
    }
}
