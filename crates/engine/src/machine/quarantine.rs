//! Records that may have killed their process: which of them run together, and when.
//!
//! A record whose last attempts were lost is a suspect. Its idempotency record has the number of losses in
//! a row. Its suspicion falls by one with each receive since its last attempt, because it was passed over
//! at those: that bounds how often it is received before it runs. Suspects run in *quarantine groups* of one
//! suspicion, with nothing beside them: the more they are suspected, the smaller the groups. So the many
//! records that were only near a death are processed soon, and the one that kills is soon alone.

use std::cmp::Reverse;

use crate::rules::{Rule, keeps};
use lambda_idempotency_core::{admission::Held, record::IdempotencyRecord};

/// What is known of the earlier attempts of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempts {
    failed: u32,
    lost: u32,
    /// How many of the lost ones come one after the other, up to the last.
    losses: u32,
    /// The receive of the last one; 0 if it is not known.
    last_receive: u32,
}

impl Attempts {
    /// The attempts before this claim, which is to replace what was seen.
    pub(super) fn before(held: &Held, seen: Option<&IdempotencyRecord>) -> Self {
        Self {
            failed: held.failed_attempts(),
            lost: held.lost_attempts(),
            losses: held.consecutive_losses(),
            last_receive: seen.map_or(0, |seen| seen.last_receive),
        }
    }

    pub(super) const fn losses(&self) -> u32 {
        self.losses
    }

    /// At how many receives since its last attempt, before this one, the record was passed over.
    fn passed_over(&self, receives: u32) -> u32 {
        if !keeps(Rule::SuspicionFalls) {
            return 0;
        }
        match receives.saturating_sub(1).checked_sub(self.last()) {
            Some(passed_over) => passed_over,
            // Its source counts anew, or a copy with another count was tried: one attempt at every second
            // receive is assumed.
            None => receives / 2,
        }
    }

    /// Whether the record goes before all others: it was passed over. If it is not known how often, it
    /// does so at every second receive, lest the others of a record that kills be received in vain each
    /// time.
    fn goes_first(&self, receives: u32) -> bool {
        let is_known = receives > self.last();
        self.passed_over(receives) > 0 && (is_known || receives.is_multiple_of(2))
    }

    /// The receive of the last attempt. There were as many receives as attempts at least, also if the
    /// last one is not known or was that of a copy.
    fn last(&self) -> u32 {
        let tried = self.lost.saturating_add(self.failed);
        if keeps(Rule::CountsSinceTheLastAttempt) { self.last_receive.max(tried) } else { tried }
    }
}

/// The number of receives between the last attempt of a record that is not a suspect and this receive, at
/// which it was not tried. `seen` was found under its key.
pub(super) fn in_vain(receives: u32, seen: Option<&IdempotencyRecord>) -> u32 {
    let last = seen.map_or(0, |seen| {
        seen.last_receive.max(seen.lost_attempts.saturating_add(seen.failed_attempts))
    });
    receives.saturating_sub(1).saturating_sub(last)
}

/// The order in which suspects go: those that were passed over before others, isolated ones after
/// others, less suspected ones first, and of these the ones that were received most often.
type Rank = (bool, bool, u32, Reverse<u32>);

/// From so many losses in a row on, a record is isolated from the other invocations of the process. Two
/// receives at which it was passed over since its last attempt count as one loss less: one in vain before
/// each death must not hide a record that kills, and a process that is never idle must not keep it out for ever.
const ISOLATED_FROM: u32 = 2;

/// A record that may have killed its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Suspect {
    at: usize,
    rank: Rank,
    passed_over: u32,
}

impl Suspect {
    const fn goes_last(&self) -> bool {
        self.rank.0
    }

    const fn is_isolated(&self) -> bool {
        self.rank.1
    }

    const fn suspicion(&self) -> u32 {
        self.rank.2
    }
}

/// The records in quarantine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Quarantine {
    waiting: Vec<Suspect>,
    /// The group that is being claimed or runs: nothing else is started meanwhile.
    group: Vec<usize>,
    /// By suspicion: the most suspects that have waited at once.
    most: Vec<(u32, usize)>,
}

impl Quarantine {
    /// Record `at` was received so often and had these attempts. One that was passed over goes before
    /// all other records, unless `too_late`: then they are under way.
    pub(super) fn add(&mut self, at: usize, attempts: Attempts, receives: u32, too_late: bool) {
        let passed_over = attempts.passed_over(receives);
        let goes_first = attempts.goes_first(receives) && keeps(Rule::PassedOverGoFirst);
        let goes_last = !goes_first || too_late;
        let suspicion = attempts.losses.saturating_sub(passed_over);
        let isolated = attempts.losses.saturating_sub(passed_over / 2) >= ISOLATED_FROM;
        let rank = (goes_last, isolated, suspicion, Reverse(receives));
        let suspect = Suspect { at, rank, passed_over };
        let index = self.waiting.partition_point(|other| other.rank <= suspect.rank);
        self.waiting.insert(index, suspect);
    }

    /// Whether a group has its turn.
    pub(super) const fn is_active(&self) -> bool {
        !self.group.is_empty()
    }

    /// Whether record `at` is in the group that has its turn.
    pub(super) fn has_turn(&self, at: usize) -> bool {
        self.group.contains(&at)
    }

    /// Whether suspects wait that go before all other records, of which one was received in vain so often
    /// since its last attempt. One that was passed over more often than all of those suspects goes before
    /// them: otherwise one suspect after the other, each of another batch, could keep it from its start.
    pub(super) fn goes_first(&self, in_vain: u32) -> bool {
        let first = self.waiting.iter().take_while(|suspect| !suspect.goes_last());
        first.map(|suspect| suspect.passed_over).max().is_some_and(|most| most >= in_vain)
    }

    /// Whether suspects wait.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the next group is isolated from the other invocations of the process.
    pub(super) fn next_is_isolated(&self) -> bool {
        self.waiting.first().is_some_and(Suspect::is_isolated)
    }

    /// Gives the next group its turn, while nothing else runs: records of one suspicion, as many as
    /// that allows, and not more than `most`.
    pub(super) fn next_group(&mut self, most: usize) -> Vec<usize> {
        let Some(first) = self.waiting.first().copied() else { return Vec::new() };
        let size = self.size(first.suspicion()).min(most).max(1);
        let kind = |suspect: &Suspect| (suspect.rank.0, suspect.rank.1, suspect.rank.2);
        let alike = |suspect: &Suspect| kind(suspect) == kind(&first);
        let count = self.waiting.iter().take(size).take_while(|suspect| alike(suspect)).count();
        self.group = self.waiting.drain(..count).map(|suspect| suspect.at).collect();
        self.group.clone()
    }

    /// The size of a group of this suspicion: for each step of suspicion, a quarter of the most suspects
    /// that have waited with it. Some are found late, behind others of their group or of a busy key.
    fn size(&mut self, suspicion: u32) -> usize {
        let alike = self.waiting.iter().filter(|suspect| suspect.suspicion() == suspicion).count();
        let known = self.most.iter_mut().find(|(known, _)| *known == suspicion);
        let most = match known {
            Some((_, most)) => {
                *most = alike.max(*most);
                *most
            }
            None => {
                self.most.push((suspicion, alike));
                alike
            }
        };
        let parts = 4_usize.saturating_pow(suspicion);
        if keeps(Rule::SuspicionSplits) { most.div_ceil(parts) } else { most }
    }

    /// Record `at` has its outcome, or waits for another worker.
    pub(super) fn leave(&mut self, at: usize) {
        self.group.retain(|member| *member != at);
    }

    /// Takes those of these records that wait for their turn: they are not started any more.
    pub(super) fn take_waiting(&mut self, which: impl Fn(usize) -> bool) -> Vec<usize> {
        let taken = self.waiting.extract_if(.., |suspect| which(suspect.at));
        taken.map(|suspect| suspect.at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts were lost, all one after the other.
    fn lost(losses: u32) -> Attempts {
        Attempts { failed: 0, lost: losses, losses, last_receive: 0 }
    }

    fn groups(mut quarantine: Quarantine, most: usize) -> Vec<Vec<usize>> {
        let mut groups = Vec::new();
        while quarantine.is_waiting() {
            let group = quarantine.next_group(most);
            group.iter().for_each(|at| quarantine.leave(*at));
            groups.push(group);
        }
        groups
    }

    /// Suspects by their losses and receives, numbered from 0.
    fn quarantine(suspects: &[(u32, u32)]) -> Quarantine {
        let mut quarantine = Quarantine::default();
        for (at, (losses, receives)) in suspects.iter().enumerate() {
            quarantine.add(at, lost(*losses), *receives, false);
        }
        quarantine
    }

    fn sizes(suspects: &[(u32, u32)], most: usize) -> Vec<usize> {
        groups(quarantine(suspects), most).iter().map(Vec::len).collect()
    }

    #[test]
    fn groups_are_smaller_the_more_their_records_are_suspected() {
        assert_eq!(sizes(&[(1, 2); 10], 16), [3, 3, 3, 1], "after one death");
        assert_eq!(sizes(&[(2, 3); 10], 16), [1; 10], "after two");
        assert_eq!(sizes(&[(1, 2); 3], 16), [1; 3]);
        assert_eq!(sizes(&[(1, 3); 10], 16), [10], "passed over once");
        assert_eq!(sizes(&[(1, 3); 10], 4), [4, 4, 2], "as many as may run at once");
        assert_eq!(sizes(&[(u32::MAX, 0); 2], 16), [1; 2]);
    }

    #[test]
    fn a_group_has_one_suspicion_and_those_passed_over_go_first() {
        let suspects = quarantine(&[(1, 2), (1, 2), (2, 3), (1, 3), (1, 4), (3, 5)]);
        assert_eq!(groups(suspects, 16), [vec![4, 3], vec![5], vec![0], vec![1], vec![2]]);
    }

    #[test]
    fn only_receives_since_the_last_attempt_count() {
        let passed_over = |last_receive| {
            let tried = Attempts { failed: 2, lost: 3, losses: 1, last_receive };
            [0, 6, 7, 9].map(|receives| tried.passed_over(receives))
        };
        assert_eq!(passed_over(5), [0, 0, 1, 3]);
        assert_eq!(passed_over(6), [0, 3, 0, 2], "one receive in vain before it");
        assert_eq!(passed_over(0), passed_over(5), "not known: once for each attempt at least");
        assert_eq!(passed_over(1), passed_over(5), "that of a copy");
    }

    /// Received less often than tried: its source counts anew.
    #[test]
    fn a_redriven_record_goes_first_at_every_second_receive() {
        let tried = lost(5);
        let all = 1..=8;
        let passed_over: Vec<u32> =
            all.clone().map(|receives| tried.passed_over(receives)).collect();
        assert_eq!(passed_over, [0, 1, 1, 2, 2, 0, 1, 2], "by its own count from 6 on");
        let goes_first: Vec<u32> = all.filter(|receives| tried.goes_first(*receives)).collect();
        assert_eq!(goes_first, [2, 4, 7, 8]);
    }

    #[test]
    fn records_that_are_under_way_are_not_held_up() {
        let mut quarantine = Quarantine::default();
        quarantine.add(0, lost(1), 3, true);
        assert!(!quarantine.goes_first(0));
        quarantine.add(1, lost(1), 3, false);
        assert!(quarantine.goes_first(1));
        assert!(!quarantine.goes_first(2), "another one was passed over more often");
    }
}
