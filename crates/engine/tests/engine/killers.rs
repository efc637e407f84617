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
    support::{World, rec},
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
