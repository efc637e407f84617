//! Stories with every stop, with every pair of stops, and with samples of three stops.

use std::{fmt, time::Duration};

use lambda_idempotency_testkit::crashing::{DelayedWrites, crash_points};

use crate::{
    stop::Stop,
    story::{Story, StoryResult},
};

/// When writes in flight are applied: after this many calls of the store, or never.
const FATES: [DelayedWrites; 5] = [
    DelayedWrites::After(0),
    DelayedWrites::After(1),
    DelayedWrites::After(2),
    DelayedWrites::After(4),
    DelayedWrites::Lost,
];

/// How long after the end of its lease a suspended process continues: while its successor still waits
/// for the clock skew, beside its successor, and after all work is done.
const LONGER: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_millis(1500),
    Duration::from_secs(3),
    Duration::from_secs(60),
];

/// The number of stories, and their results.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) stories: usize,
    /// Awaits at which the first invocation was dropped.
    pub(crate) points: usize,
    pub(crate) stops: u32,
    pub(crate) pending: usize,
    pub(crate) doubled: usize,
    pub(crate) repeated_steps: usize,
    pub(crate) warned: usize,
    most: usize,
    longest: Duration,
    /// Violations, each with the stops that lead to it.
    pub(crate) violations: Vec<(Vec<Stop>, String)>,
    /// The steps of the first violation's story.
    notes: Vec<String>,
}

impl Tally {
    async fn run(&mut self, story: &Story, stops: &[Stop]) -> StoryResult {
        let result = story.run(stops).await;
        self.stories += 1;
        self.stops += result.stops;
        self.pending += usize::from(result.pending > 0);
        self.doubled += result.doubled;
        self.repeated_steps += result.repeated_steps;
        self.warned += result.warned;
        self.most = self.most.max(result.deliveries);
        self.longest = self.longest.max(result.took);
        if !result.violations.is_empty() && self.violations.is_empty() {
            self.notes = Story { noted: true, ..story.clone() }.run(stops).await.notes;
        }
        self.violations.extend(result.violations.iter().map(|what| (stops.to_vec(), what.clone())));
        result
    }

    /// Runs `story` with the stops `before`, and then a drop at every poll of the next invocation, with
    /// every fate of its writes in flight. Returns the number of polls.
    async fn drop_everywhere(
        &mut self,
        story: &Story,
        before: &[Stop],
        fates: &[DelayedWrites],
    ) -> usize {
        let dropped = |stop: &&Stop| matches!(stop, Stop::Dropped(..));
        let dropped_before = before.iter().filter(dropped).count();
        crash_points(async |polls| {
            for fate in fates {
                let stops = [before, &[Stop::Dropped(polls, *fate)]].concat();
                let result = self.run(story, &stops).await;
                if result.dropped <= dropped_before {
                    return true;
                }
                // No write was in flight, so the other fates would make no difference.
                if result.pending == 0 {
                    break;
                }
            }
            false
        })
        .await
    }

    /// The same with a suspension, and every time to continue.
    async fn freeze_everywhere(&mut self, story: &Story) {
        crash_points(async |polls| {
            for longer in LONGER {
                let result = self.run(story, &[Stop::Frozen(polls, longer)]).await;
                if result.dropped == 0 {
                    return true;
                }
            }
            false
        })
        .await;
    }

    /// The same with a halt of each of its handlers, at each of their awaits.
    async fn halt_everywhere(&mut self, story: &Story) {
        for stop in Stop::of_handlers(story.messages.len()) {
            self.run(story, &[stop]).await;
        }
    }

    /// Asserts that there was no violation, and that the stories had stops, doubled effects, warned
    /// handlers and pending writes.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        self.assert_no_violations();
        assert!(self.doubled > 0, "{self}");
    }

    /// The same where effects are committed: none was doubled.
    #[track_caller]
    pub(crate) fn assert_exactly_once(&self) {
        self.assert_clean();
        assert!(self.warned > 0, "{self}");
        assert_eq!(self.doubled, 0, "{self}");
    }

    /// The same where handlers have steps: some ran again, because a worker stopped before they were kept.
    #[track_caller]
    pub(crate) fn assert_steps(&self) {
        self.assert_no_violations();
        assert!(self.repeated_steps > 0, "{self}");
        println!("{} steps ran again", self.repeated_steps);
    }

    /// The same where keys are not claimed, so that no handler is told of lost attempts.
    #[track_caller]
    pub(crate) fn assert_once_without_claims(&self) {
        self.assert_clean();
        assert_eq!((self.doubled, self.warned), (0, 0), "{self}");
    }

    #[track_caller]
    fn assert_no_violations(&self) {
        self.assert_clean();
        assert!(self.warned > 0 && self.pending > 0, "{self}");
    }

    #[track_caller]
    fn assert_clean(&self) {
        if let Some((stops, what)) = self.violations.first() {
            let (all, notes) = (self.violations.len(), self.notes.join("\n"));
            panic!("{what}; {all} violations in all; the steps, with {stops:?}:\n{notes}");
        }
        assert!(self.stops > 0, "{self}");
        println!("{self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stories, points, stops, pending, doubled, warned, most, longest, .. } = self;
        write!(
            f,
            "{stories} stories, {points} points, {stops} stops, {pending} with writes pending, \
             {doubled} effects doubled, {warned} handlers warned; at most {most} deliveries and \
             {longest:?} after the last stop"
        )
    }
}

impl Story {
    /// Tells the story with one stop, at every place.
    pub(crate) async fn everywhere(&self) -> Tally {
        let mut tally = Tally::default();
        let clean = tally.run(self, &[]).await;
        if clean.doubled + clean.warned > 0 {
            tally.violations.push((Vec::new(), "doubled or warned without a stop".to_owned()));
        }
        tally.points = tally.drop_everywhere(self, &[], &FATES).await;
        tally.freeze_everywhere(self).await;
        tally.halt_everywhere(self).await;
        tally
    }

    /// Tells the story with two stops, at every pair of places: in one invocation, and in the next one.
    pub(crate) async fn in_pairs(&self) -> Tally {
        let mut tally = Tally::default();
        let fates = [DelayedWrites::After(1), DelayedWrites::Lost];
        let mut first = Vec::new();
        tally.points = crash_points(async |polls| {
            for fate in fates {
                let stop = Stop::Dropped(polls, fate);
                let result = tally.run(self, &[stop]).await;
                if result.dropped == 0 {
                    return true;
                }
                first.push(stop);
                if result.pending == 0 {
                    break;
                }
            }
            false
        })
        .await;
        first.extend(Stop::of_handlers(1));
        for stop in first {
            tally.drop_everywhere(self, &[stop], &fates).await;
        }
        tally
    }

    /// Tells the story with three stops, chosen by `seed`, `stories` times. `CRASHING_TIMES` multiplies
    /// that number.
    pub(crate) async fn sampled(&self, stories: usize, seed: u64) -> Tally {
        let mut tally = Tally::default();
        let mut dice = Dice(seed);
        let halts = Stop::of_handlers(self.messages.len());
        let points = tally.drop_everywhere(self, &[], &[DelayedWrites::Lost]).await;
        tally.points = points;
        let times = std::env::var("CRASHING_TIMES").map_or(1, |times| times.parse().unwrap());
        for _ in 0..stories * times {
            let stops: Vec<Stop> = (0..3)
                .map(|_| match dice.roll(8) {
                    0 => halts[dice.roll(halts.len())],
                    _ => Stop::Dropped(dice.roll(points), FATES[dice.roll(FATES.len())]),
                })
                .collect();
            tally.run(self, &stops).await;
        }
        tally
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) >> 33).unwrap() % sides
    }
}
