//! The runs whose figures the guide shows, by name.

use std::{ops::RangeInclusive, time::Duration};

use crate::scenario::{A_BILLION_A_DAY, FaultKind, Scenario};

/// The maximum concurrency that the guide recommends: the batches of ten at once for which 40,000 write units a second
/// suffice.
pub const LIMIT: usize = 920;
/// What the load needs.
const NEEDED: usize = 540;
/// The most that can be set.
const MOST: usize = 1000;

/// When the fault of a run begins, and how long it lasts.
const FROM: Duration = Duration::from_secs(60);
const LASTS: Duration = Duration::from_mins(2);

/// Every run, the longest first.
#[must_use]
pub fn all() -> Vec<(String, Scenario)> {
    use FaultKind::{HotKeys, Outage, Throttling};
    let mut runs = vec![
        named("whole outage", whole(LIMIT, 720).with(Outage, FROM, LASTS)),
        named("whole throttling", whole(LIMIT, 420).with(Throttling, FROM, LASTS)),
        named("whole, one hot key", one_hot_key(true)),
        named("whole, one hot key without memory", one_hot_key(false)),
        named("new table", {
            // A burst, which finds a table that is new.
            let mut run = Scenario::new(1, MOST, 200_000, A_BILLION_A_DAY);
            run.pollers.first = MOST;
            run.table.warm = 4000.0;
            run
        }),
        named("start", tenth(LIMIT, 420, Scenario::tenth(1, 1).pollers.first)),
        named("steady", tenth(LIMIT, 420, NEEDED / 10)),
    ];
    for kind in FaultKind::ALL {
        runs.push(named(kind.name(), tenth(LIMIT, 780, NEEDED / 10).with(kind, FROM, LASTS)));
    }
    runs.extend([
        named("hot-keys without memory", {
            let mut run = tenth(LIMIT, 780, NEEDED / 10).with(HotKeys, FROM, LASTS);
            run.remembers = false;
            run
        }),
        named("outage, what the load needs", {
            tenth(NEEDED, 780, NEEDED / 10).with(Outage, FROM, LASTS)
        }),
        named("outage, the most", tenth(MOST, 780, NEEDED / 10).with(Outage, FROM, LASTS)),
        named("outage without the quota of the queue", {
            let mut run = tenth(LIMIT, 780, NEEDED / 10).with(Outage, FROM, LASTS);
            run.most_in_flight = u32::MAX;
            run
        }),
    ]);
    runs.extend(SEEDS.map(|seed| named(SMALL, each_fault_once(seed))));
    runs
}

/// The name of the runs that the gate makes again, of which the means are recorded.
pub const SMALL: &str = "small";
/// The seeds of these. What a delivery costs in an outage of 15 seconds differs by a fifth from one to the other.
const SEEDS: RangeInclusive<u64> = 1..=8;

/// 20 functions and 20,000 records, some of which kill their processes, and each fault once.
#[must_use]
pub fn each_fault_once(seed: u64) -> Scenario {
    let (apart, lasts) = (Duration::from_secs(50), Duration::from_secs(15));
    let mut scenario = Scenario::small(seed);
    scenario.killer_every = 9001;
    for (number, kind) in (1..).zip(FaultKind::ALL) {
        scenario = scenario.with(kind, apart * number, lasts);
    }
    scenario
}

fn named(name: &str, scenario: Scenario) -> (String, Scenario) {
    (name.to_owned(), scenario)
}

/// A whole fleet, to which a billion records a day are sent for so many seconds. It has been running: its pollers are as
/// many as the load needs.
fn whole(limit: usize, seconds: u32) -> Scenario {
    let records = f64::from(seconds) * A_BILLION_A_DAY;
    let mut run = Scenario::new(1, limit, records as u32, A_BILLION_A_DAY);
    run.pollers.first = NEEDED;
    run
}

/// A fifth of all records have one key, which is more than a partition serves.
fn one_hot_key(remembers: bool) -> Scenario {
    let mut run = whole(LIMIT, 240).with(FaultKind::HotKeys, FROM, LASTS);
    (run.hot_keys, run.remembers) = (1, remembers);
    run
}

/// A tenth of it.
fn tenth(limit: usize, seconds: u32, pollers: usize) -> Scenario {
    let records = f64::from(seconds) * A_BILLION_A_DAY / 10.0;
    let mut run = Scenario::tenth(1, records as u32);
    run.functions = limit / 10;
    run.pollers.first = pollers;
    run
}
