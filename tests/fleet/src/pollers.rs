//! How Lambda polls the queue: one task for each batch that may be processed at once.
//!
//! Lambda begins with five batches and adds up to 300 each minute while messages are left:
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html>. It reduces them when there is little to do,
//! and when invocations fail, though not for records that a function reports as failed:
//! <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>. By how much is not documented; here it
//! is a twentieth each second.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crate::{function::Function, scenario::Broken, time::micros, world::World};

/// How long a poll waits that finds nothing, while records are sent and afterwards.
const IDLE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(1)];
const A_SECOND: Duration = Duration::from_secs(1);
/// The share of invocations that may fail before Lambda polls less.
const FAILED: f64 = 0.05;
/// By how much it polls less after each second.
const LESS: f64 = 0.95;

/// Polls with one function until nothing is left.
pub(crate) async fn poll(world: Arc<World>, number: usize) {
    let mut function = Function::new(&world, number);
    while !world.is_over() {
        if number >= world.pollers.load(Ordering::Relaxed) {
            world.timeline.sleep(A_SECOND).await;
            continue;
        }
        let now = world.timeline.now();
        let batch = world.queue().receive(now, world.scenario.batch);
        if batch.is_empty() {
            world.figures.count(now, |second| second.idle += 1);
            let is_sent = now > micros(world.scenario.sent());
            world.timeline.sleep(IDLE[usize::from(is_sent)]).await;
            continue;
        }
        world.figures.count(now, |second| second.received += batch.len() as u64);
        let acknowledged = function.invoke(&world, &batch).await;
        let took = world.timeline.now() - now;
        let now = world.timeline.now();
        let is_full = batch.len() == world.scenario.batch && !world.scenario.suffers_any(now);
        let deletes_all = world.scenario.broken == Some(Broken::DeletesAll);
        let is_answered = acknowledged.is_some();
        let acknowledged = acknowledged.unwrap_or_default();
        let mut deleted = 0;
        for (at, message) in batch.iter().enumerate() {
            if acknowledged.get(at).is_some_and(|is| *is) || deletes_all {
                deleted += u64::from(world.queue().delete(*message));
            }
        }
        world.figures.count(now, |second| {
            second.invocations += 1;
            second.killed += u64::from(!is_answered);
            second.acknowledged += deleted;
            if is_full {
                second.full_batches += 1;
                second.in_full_batches += took;
            }
        });
    }
}

/// Decides each second how many batches may be processed at once.
pub(crate) async fn scale(world: Arc<World>) {
    let settings = world.scenario.pollers;
    let most = world.scenario.functions as f64;
    let fewest = (settings.fewest as f64).min(most);
    let mut pollers = (settings.first as f64).min(most);
    while !world.is_over() {
        world.timeline.sleep(A_SECOND).await;
        let now = world.timeline.now();
        let waiting = world.queue().waiting(now);
        let backlog = world.queue().backlog(now);
        let last = world.figures.of(now - 1);
        if last.killed as f64 > FAILED * last.invocations as f64 {
            pollers *= LESS;
        } else if waiting as f64 > pollers {
            pollers += settings.more_per_minute / 60.0;
        } else if last.idle > last.invocations {
            pollers *= LESS;
        }
        pollers = pollers.clamp(fewest, most);
        world.pollers.store(pollers as usize, Ordering::Relaxed);
        world.figures.count(now - 1, |second| {
            second.pollers = pollers as u64;
            second.waiting = waiting;
            second.backlog = backlog;
        });
    }
}
