//! What a simulation has shown, and whether all is as it must be.

use std::{collections::BTreeSet, fmt, time::Duration};

use crate::{
    figures::Second,
    ledger::Tally,
    scenario::{FaultKind, Scenario},
    world::World,
};

/// The throughput before and after a fault is the mean of so many seconds.
const MEAN: usize = 10;
/// The throughput is back when it is this share of what it was before.
const BACK: f64 = 0.9;
/// There is no backlog if what was sent and is not settled is less than was sent in so many seconds. Without one, it is
/// what is being processed: half a second's.
const NO_BACKLOG: f64 = 2.0;
/// The most writes that a delivery may cost on average while the table throttles or does not answer. The pauses
/// between requests grow to 200 ms at least, so a claim, which is given up after 5 seconds, is sent 29 times at most.
const MOST_WRITES: f64 = 29.0;

/// The result of a simulation. Two of the same scenario are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How many records were sent, and how many batches could be processed at once.
    pub size: (u32, usize),
    /// Whether records kill the processes that work on them.
    pub has_killers: bool,
    /// The sums of all seconds.
    pub total: Second,
    /// What handlers did.
    pub tally: Tally,
    /// How many records were received once, twice, ... until they were deleted.
    pub receives: Vec<u32>,
    /// Records in the dead-letter queue whose handlers always fail.
    pub dead: usize,
    /// Others in it whose work is done: each of their invocations was killed before it could acknowledge them.
    pub dead_and_done: usize,
    /// Others in it.
    pub dead_in_vain: Vec<u32>,
    /// Records whose handlers always fail and that are not in it.
    pub undead: usize,
    /// Records that were deleted from the queue, while nothing was done for their keys.
    pub undone: usize,
    /// Records that are neither deleted nor in the dead-letter queue.
    pub stuck: u32,
    /// When the last record was sent, and when the last one was through.
    pub ended: (Duration, Duration),
    /// The last second with a backlog, while records were sent.
    pub backlog_until: Duration,
    /// The backlog when the last record was sent.
    pub backlog_left: u64,
    /// The most records that were acknowledged in a second, as a mean of ten seconds.
    pub fastest: f64,
    /// The write units a second that the table could serve in the end.
    pub capacity: f64,
    /// What each fault has done.
    pub faults: Vec<FaultReport>,
}

/// What a fault has done.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultReport {
    /// Which fault.
    pub kind: FaultKind,
    /// When it began, and how long it lasted.
    pub window: (Duration, Duration),
    /// Records a second before it.
    pub before: f64,
    /// Records a second while it lasted.
    pub during: f64,
    /// How long after its end the throughput was back.
    pub back_after: Option<Duration>,
    /// How long after its end there was no backlog, while records were still sent.
    pub no_backlog_after: Option<Duration>,
    /// The backlog when it ended.
    pub backlog: u64,
    /// What happened while it lasted.
    pub sum: Second,
}

impl FaultReport {
    /// The writes that a delivery cost while the fault lasted.
    #[must_use]
    pub fn writes_per_delivery(&self) -> f64 {
        self.sum.writes as f64 / self.sum.received.max(1) as f64
    }

    /// The requests that a delivery cost while the fault lasted.
    #[must_use]
    pub fn requests_per_delivery(&self) -> f64 {
        self.sum.requests as f64 / self.sum.received.max(1) as f64
    }
}

impl Report {
    pub(crate) fn of(world: &World) -> Self {
        let scenario = &*world.scenario;
        let seconds = world.figures.all();
        let sending = sending(scenario, &seconds);
        let (queue, ledger) = (world.queue(), world.ledger());
        let is_hopeless = |record: u32| {
            let key = scenario.key(record);
            scenario.is_poison(key) || scenario.is_killer(key)
        };
        let dead: BTreeSet<u32> = queue.dead().iter().copied().collect();
        let is_done = |record: u32| world.table.is_completed(scenario.key(record));
        let hopeless: BTreeSet<u32> = (0..scenario.records).filter(|r| is_hopeless(*r)).collect();
        Self {
            size: (scenario.records, scenario.functions),
            has_killers: scenario.killer_every > 0,
            total: Second::sum(&seconds),
            tally: ledger.tally(),
            receives: queue.receives(),
            dead: dead.intersection(&hopeless).count(),
            dead_and_done: dead.difference(&hopeless).filter(|record| is_done(**record)).count(),
            dead_in_vain: dead
                .difference(&hopeless)
                .copied()
                .filter(|one| !is_done(*one))
                .collect(),
            undead: hopeless.difference(&dead).count(),
            undone: (0..scenario.records)
                .filter(|record| {
                    queue.is_deleted(*record) && !ledger.is_done(scenario.key(*record))
                })
                .count(),
            stuck: queue.unsettled(),
            ended: (scenario.sent(), Duration::from_micros(world.timeline.now())),
            backlog_until: Duration::from_secs(
                sending
                    .iter()
                    .rposition(|second| is_backlog(scenario, second))
                    .map_or(0, |at| at as u64 + 1),
            ),
            backlog_left: sending.last().map_or(0, |second| second.backlog),
            fastest: fastest(&seconds),
            capacity: world.table.capacity(),
            faults: faults(scenario, &seconds),
        }
    }

    /// The requests to the table for each record.
    #[must_use]
    pub fn requests_per_record(&self) -> f64 {
        self.total.requests as f64 / f64::from(self.size.0)
    }

    /// How long a full batch took while nothing was going wrong.
    #[must_use]
    pub fn full_batch(&self) -> Duration {
        Duration::from_micros(self.total.in_full_batches / self.total.full_batches.max(1))
    }

    /// What is not as it must be.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut none = |count: u64, what: &str| {
            if count > 0 {
                wrong.push(format!("{count} {what}"));
            }
        };
        none(self.tally.lost, "records were acknowledged although their work was not done");
        none(self.undone as u64, "records were deleted although their work was not done");
        none(self.tally.unexplained, "effects were doubled without a cause");
        none(self.tally.overlaps, "handlers ran while another had their key");
        none(self.tally.uncompleted, "records were executed and are not completed");
        none(u64::from(self.stuck), "records are stuck");
        none(
            self.dead_in_vain.len() as u64,
            "records that can be processed are in the dead-letter queue",
        );
        if !self.has_killers {
            let what = "records that are done are in the dead-letter queue, and nothing killed their processes";
            none(self.dead_and_done as u64, what);
        }
        none(self.undead as u64, "records that always fail are not in the dead-letter queue");
        for fault in &self.faults {
            let name = fault.kind.name();
            if fault.back_after.is_none() {
                wrong.push(format!("after `{name}` the throughput did not come back"));
            }
            let writes = fault.writes_per_delivery();
            if writes > MOST_WRITES {
                wrong.push(format!("during `{name}` a delivery cost {writes:.1} writes"));
            }
        }
        wrong
    }
}

/// The seconds in which records were sent.
fn sending<'a>(scenario: &Scenario, seconds: &'a [Second]) -> &'a [Second] {
    seconds.get(..scenario.sent().as_secs() as usize).unwrap_or(seconds)
}

fn is_backlog(scenario: &Scenario, second: &Second) -> bool {
    second.backlog as f64 > NO_BACKLOG * scenario.rate
}

fn rate(seconds: &[Second]) -> f64 {
    Second::sum(seconds).acknowledged as f64 / seconds.len().max(1) as f64
}

fn fastest(seconds: &[Second]) -> f64 {
    seconds.windows(MEAN.min(seconds.len().max(1))).map(rate).fold(0.0, f64::max)
}

fn faults(scenario: &Scenario, seconds: &[Second]) -> Vec<FaultReport> {
    let report = |fault: &crate::scenario::Fault| {
        let at = |time: Duration| (time.as_secs() as usize).min(seconds.len());
        let (from, to) = (at(fault.from), at(fault.from + fault.lasts));
        // Not what is processed of a backlog.
        let before = rate(&seconds[from.saturating_sub(3 * MEAN)..from]).min(scenario.rate);
        let after = seconds[to..].windows(MEAN);
        let back = after.map(rate).position(|rate| rate >= BACK * before);
        let mut afterwards = sending(scenario, seconds).iter().skip(to);
        let gone = afterwards.position(|second| !is_backlog(scenario, second));
        FaultReport {
            kind: fault.kind,
            window: (fault.from, fault.lasts),
            before,
            during: rate(&seconds[from..to]),
            // The end of the ten seconds in which it was back.
            back_after: back.map(|at| Duration::from_secs((at + MEAN) as u64)),
            no_backlog_after: gone.map(|at| Duration::from_secs(at as u64)),
            backlog: seconds[from..to].last().map_or(0, |second| second.backlog),
            sum: Second::sum(&seconds[from..to]),
        }
    };
    scenario.faults.iter().map(report).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size: (records, functions), total, tally, .. } = self;
        let each = |count: u64| count as f64 / f64::from(*records);
        let (sent, ended) = (self.ended.0.as_secs(), self.ended.1.as_secs());
        writeln!(f, "{records} records sent in {sent} s, all through after {ended} s")?;
        writeln!(f, "  at most {} batches at once, of {functions}", total.pollers)?;
        writeln!(f, "  at most {:.0} records a second", self.fastest)?;
        writeln!(f, "  at most {} records waiting", total.waiting)?;
        writeln!(
            f,
            "  a backlog of at most {}, until {} s, and of {} when all were sent",
            total.backlog,
            self.backlog_until.as_secs(),
            self.backlog_left
        )?;
        writeln!(f, "  a full batch took {:.3} s", self.full_batch().as_secs_f64())?;
        writeln!(f, "  {} invocations, {} killed", total.invocations, total.killed)?;
        writeln!(f, "  received once, twice, ...: {:?}", self.receives)?;
        let others = self.dead_in_vain.get(..10).unwrap_or(&self.dead_in_vain);
        let (dead, in_vain) = (self.dead, self.dead_in_vain.len());
        let done = self.dead_and_done;
        writeln!(
            f,
            "  in the dead-letter queue: {dead} that always fail, {done} done, {in_vain} others"
        )?;
        if in_vain > 0 {
            writeln!(f, "    the first of these (see `--trace`): {others:?}")?;
        }
        writeln!(f, "table, for each record")?;
        writeln!(f, "  {:.3} requests", self.requests_per_record())?;
        let served = total.writes - total.throttled;
        writeln!(f, "  {:.3} write units", each(served))?;
        writeln!(f, "  {:.3} read units", each(total.reads))?;
        writeln!(f, "  {:.3} writes throttled", each(total.throttled))?;
        writeln!(f, "  it could serve {:.0} write units a second in the end", self.capacity)?;
        writeln!(f, "effects")?;
        writeln!(f, "  {} in all, {} doubled", tally.effects, tally.doubled)?;
        for (cause, count) in &tally.causes {
            writeln!(f, "  {count} that another could have followed: {cause:?}")?;
        }
        writeln!(f, "outcomes")?;
        for (outcome, count) in &tally.outcomes {
            writeln!(f, "  {count:>9} {outcome}")?;
        }
        for fault in &self.faults {
            write!(f, "{fault}")?;
        }
        let wrong = self.wrong();
        writeln!(f, "{}", if wrong.is_empty() { "all as it must be" } else { "WRONG" })?;
        wrong.iter().try_for_each(|wrong| writeln!(f, "  {wrong}"))
    }
}

impl fmt::Display for FaultReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, (from, lasts)) = (self.kind.name(), self.window);
        writeln!(f, "{name} from {} s for {} s", from.as_secs(), lasts.as_secs())?;
        writeln!(f, "  {:.0} records a second before, {:.0} during", self.before, self.during)?;
        match self.back_after {
            Some(after) => {
                writeln!(f, "  90 % of the throughput back {} s after its end", after.as_secs())?;
            }
            None => writeln!(f, "  90 % of the throughput never came back")?,
        }
        match self.no_backlog_after {
            Some(after) => writeln!(f, "  no backlog {} s after its end", after.as_secs())?,
            None => writeln!(f, "  there was a backlog as long as records were sent")?,
        }
        writeln!(
            f,
            "  {:.2} requests and {:.2} writes for each delivery, {} writes throttled",
            self.requests_per_delivery(),
            self.writes_per_delivery(),
            self.sum.throttled,
        )
    }
}
