//! How soon a suspect is isolated in a busy process, and what the others lose by that:
//! [decision 38](../../../../docs/decisions/0038-isolation-is-process-wide.md) has the figures.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures_util::future::{join, join_all};
use lambda_idempotency_core::clock::Clock as _;

use crate::{
    isolation::lost,
    support::{Rec, World, labels, rec},
};

const SECOND: Duration = Duration::from_secs(1);
/// How long the process is observed.
const OBSERVED: u32 = 600;

/// What is counted in one process.
#[derive(Default)]
struct Counted {
    running: AtomicU32,
    through: AtomicU32,
    /// How many handlers ran when that of the suspect began.
    beside: AtomicU32,
}

fn other(label: &'static str, takes: u32, counted: &Arc<Counted>) -> Rec {
    let counted = Arc::clone(counted);
    rec(label, move |world: World, _| async move {
        counted.running.fetch_add(1, Ordering::Relaxed);
        world.clock.sleep(takes * SECOND).await;
        counted.running.fetch_sub(1, Ordering::Relaxed);
        counted.through.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })
}

fn suspect(receives: u32, counted: &Arc<Counted>) -> Rec {
    let counted = Arc::clone(counted);
    let record = rec("x", move |world: World, _| async move {
        let running = counted.running.load(Ordering::Relaxed);
        counted.beside.store(running, Ordering::Relaxed);
        world.clock.sleep(SECOND).await;
        Ok(())
    });
    record.receives(receives)
}

/// So many invocations at once, one after the other, and a suspect after two losses that is alone in its
/// batch. How often that is received until it is done.
async fn process(others: u32, takes: u32, phase: u32, counted: &Arc<Counted>) -> u32 {
    let world = lost(2, &["x"]).await;
    let (engine, end) = (world.engine(), world.clock.now().plus(OBSERVED * SECOND));
    let runs = async |number: u32| {
        world.clock.sleep(takes * SECOND * (8 * number + phase) / (8 * others)).await;
        for round in 0.. {
            if world.clock.now() >= end {
                return;
            }
            let label = format!("{number} {round}").leak();
            world.invoke_by(&engine, vec![other(label, takes, counted).receives(1)]).await;
        }
    };
    let is_received = async {
        for receives in 1.. {
            world.clock.sleep(60 * SECOND).await;
            let batch = vec![suspect(2 + receives, counted)];
            if labels(&world.invoke_by(&engine, batch).await) == ["executed"] {
                return receives;
            }
        }
        unreachable!("it runs beside the others after a while")
    };
    world.clock.drive(join(is_received, join_all((0..others).map(runs)))).await.0
}

#[tokio::test]
#[ignore = "prints figures, in a minute"]
async fn how_soon_a_suspect_is_isolated_in_a_busy_process() {
    println!("| others at once | handlers take | receives | beside others | others done |");
    for (others, takes) in [1, 3, 7].into_iter().flat_map(|n| [8, 12, 16, 20, 28].map(|s| (n, s))) {
        let (mut receives, mut beside, mut through) = (0, 0, 0);
        for phase in 0..8 {
            let counted = Arc::default();
            receives += process(others, takes, phase, &counted).await;
            beside += u32::from(counted.beside.load(Ordering::Relaxed) > 0);
            through += counted.through.load(Ordering::Relaxed);
        }
        let [receives, through] = [receives, through].map(|sum| f64::from(sum) / 8.0);
        println!("| {others} | {takes} s | {receives:.1} | {beside} of 8 | {through:.0} |");
    }
}
