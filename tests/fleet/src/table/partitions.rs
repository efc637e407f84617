//! How much the table serves: partitions, and their number.
//!
//! Each partition serves a number of units a second, and no more however little the others do: see
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput-scenarios.html>. A table on
//! demand has as many as its highest traffic has needed, twice over, and a new one four:
//! <https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/on-demand-capacity-mode.html>. How soon it
//! grows is not documented; traffic of more than twice the previous peak within 30 minutes may be throttled. So here it
//! grows 30 minutes after the new peak, the latest that the page allows. Burst capacity is left out: it does not
//! raise the limit of a partition (<https://repost.aws/knowledge-center/dynamodb-spiky-workloads-short-intervals>).

use std::time::Duration;

use crate::{
    scenario::TableSettings,
    time::{Micros, micros},
};

/// The traffic that counts for growth is the mean of so long.
const WINDOW: Duration = Duration::from_mins(1);

pub(super) struct Partitions {
    settings: TableSettings,
    partitions: Vec<Partition>,
    /// The write units that were served since then.
    served: (Micros, f64),
    /// To how many write units a second the table grows, and when.
    growing: Vec<(Micros, f64)>,
    capacity: f64,
}

#[derive(Clone, Copy)]
struct Partition {
    writes: Bucket,
    reads: Bucket,
}

/// Units that can be taken now.
#[derive(Clone, Copy)]
struct Bucket {
    units: f64,
    since: Micros,
}

impl Bucket {
    const fn new(units: f64, since: Micros) -> Self {
        Self { units, since }
    }

    /// Takes a unit, if there is one. What is not taken for a second is lost.
    fn take(&mut self, rate: f64, now: Micros) -> bool {
        let passed = (now - self.since) as f64 / 1e6;
        self.units = (self.units + passed * rate).min(rate);
        self.since = now;
        let is_served = self.units >= 1.0;
        if is_served {
            self.units -= 1.0;
        }
        is_served
    }
}

impl Partitions {
    pub(super) fn new(settings: TableSettings) -> Self {
        let mut new = Self {
            settings,
            partitions: Vec::new(),
            served: (0, 0.0),
            growing: Vec::new(),
            capacity: 0.0,
        };
        new.grow(settings.warm, 0);
        new
    }

    /// The write units a second that the whole table can serve.
    pub(super) const fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Takes a write unit of the partition of a key. `share` is how much of its limit it serves.
    pub(super) fn write(&mut self, scattered: u64, share: f64, now: Micros) -> bool {
        self.pass(now);
        let rate = self.rate() * share;
        let is_served = self.partition(scattered).writes.take(rate, now);
        if is_served {
            self.served.1 += 1.0;
        }
        is_served
    }

    /// Takes a read unit of the partition of a key.
    pub(super) fn read(&mut self, scattered: u64, now: Micros) -> bool {
        let rate = 3.0 * self.rate();
        self.partition(scattered).reads.take(rate, now)
    }

    fn rate(&self) -> f64 {
        self.settings.partition.min(self.capacity / self.partitions.len() as f64)
    }

    fn partition(&mut self, scattered: u64) -> &mut Partition {
        let count = self.partitions.len() as u128;
        let at = (u128::from(scattered) * count) >> 64;
        &mut self.partitions[at as usize]
    }

    /// A minute may be over, or a growth due.
    fn pass(&mut self, now: Micros) {
        let (since, served) = self.served;
        if now - since >= micros(WINDOW) {
            let mean = served / ((now - since) as f64 / 1e6);
            let wanted = (2.0 * mean).min(self.settings.quota);
            let last = self.growing.last().map_or(self.capacity, |(_, to)| *to);
            if wanted > last {
                self.growing.push((now + micros(self.settings.growth), wanted));
            }
            self.served = (now, 0.0);
        }
        if let Some((due, to)) = self.growing.first().copied()
            && now >= due
        {
            self.growing.remove(0);
            self.grow(to, now);
        }
    }

    fn grow(&mut self, capacity: f64, now: Micros) {
        self.capacity = capacity;
        let count = (capacity / self.settings.partition).ceil().max(1.0) as usize;
        let partition = Partition { writes: Bucket::new(0.0, now), reads: Bucket::new(0.0, now) };
        self.partitions = vec![partition; count];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{random::mix, scenario::Scenario};

    const SECOND: Micros = 1_000_000;

    /// How many writes a second are served, of this many that arrive evenly over all keys.
    fn served(partitions: &mut Partitions, from: u64, wanted: u64) -> usize {
        let at = |number: u64| from * SECOND + number * SECOND / wanted;
        (0..wanted).filter(|n| partitions.write(mix(from * wanted + n), 1.0, at(*n))).count()
    }

    #[test]
    fn a_new_table_serves_4000_units_a_second_and_twice_as_many_after_half_an_hour() {
        let mut settings = Scenario::new(1, 1, 1, 1.0).table;
        settings.warm = 4000.0;
        let mut partitions = Partitions::new(settings);
        for second in 0..62 {
            served(&mut partitions, second, 8000);
        }
        let served_early = served(&mut partitions, 100, 8000);
        assert!((3900..=8000).contains(&served_early), "{served_early}");
        assert!(partitions.capacity() < 4001.0);
        served(&mut partitions, 1900, 8000);
        assert!((7600.0..=8001.0).contains(&partitions.capacity()), "{}", partitions.capacity());
    }

    #[test]
    fn one_key_is_served_as_much_as_a_partition_serves() {
        let mut partitions = Partitions::new(Scenario::new(1, 1, 1, 1.0).table);
        let mut served = 0;
        for number in 0..10_000 {
            served += usize::from(partitions.write(7, 1.0, number * SECOND / 2000));
        }
        assert!((4990..=5001).contains(&served), "5 seconds of 1,000: {served}");
    }
}
