//! Records that may have killed their process: which of them run together, and when.
//!
//! A record whose last attempts were lost is a suspect. The numbers of its attempts and of its losses in a row are
//! all that is stored of that. Suspects run in *quarantine groups*, with nothing else of the invocation beside them:
//!
//! * Suspects that were lost once, and were received since then without an attempt, are one group.
//! * Of `n` other suspects with as many losses, `n / 4^losses` are a group.
//!
//! So the many records that were only near a death are processed soon, and the one that kills is soon alone.
//!
//! The suspects of an invocation go before all its other records, or after them: before them if the suspect that was
//! received most often was received an even number of times. So where an invocation has time for one of the two only,
//! they take turns. If each suspect had a side of its own, two of them that kill would take turns, and the other
//! records would never start.

use std::cmp::Reverse;

use super::entry::Stage;
use lambda_idempotency_core::admission::Held;

/// What is known of the earlier attempts of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Attempts {
    /// How many failed or were lost.
    tried: u32,
    /// How many were lost one after the other, up to the last.
    losses: u32,
}

impl Attempts {
    /// The attempts before this claim.
    pub(super) const fn before(held: &Held) -> Self {
        let tried = held.failed_attempts().saturating_add(held.lost_attempts());
        Self { tried, losses: held.consecutive_losses() }
    }

    pub(super) const fn losses(&self) -> u32 {
        self.losses
    }

    /// How much the record is suspected once it was received so often. After one loss, a receive without an attempt
    /// ends that: otherwise slow records that were near a death would wait for many small groups. After more losses
    /// it does not: otherwise two records that kill would come together again and again.
    fn suspicion(&self, receives: u32) -> u32 {
        let was_passed_over = receives > self.tried.saturating_add(1);
        match self.losses {
            1 if was_passed_over => 0,
            losses => losses,
        }
    }
}

/// A record that may have killed its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Suspect {
    at: usize,
    goes_first: bool,
    suspicion: u32,
    receives: u32,
}

impl Suspect {
    /// The suspects of one kind share groups.
    const fn kind(&self) -> (bool, u32) {
        (!self.goes_first, self.suspicion)
    }

    /// The order in which suspects go.
    const fn rank(&self) -> ((bool, u32), Reverse<u32>) {
        (self.kind(), Reverse(self.receives))
    }
}

/// The records in quarantine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Quarantine {
    /// In the order in which they go.
    waiting: Vec<Suspect>,
    /// The group that is being claimed or runs: nothing else is started meanwhile.
    group: Vec<usize>,
    /// By suspicion: the most suspects that have waited at once.
    most: Vec<(u32, usize)>,
    /// Whether it is decided if suspects go before all other records. Those that are found later go last.
    has_side: bool,
}

impl Quarantine {
    /// Record `at` was received so often and had these attempts.
    pub(super) fn add(&mut self, at: usize, attempts: Attempts, receives: u32) {
        let suspicion = attempts.suspicion(receives);
        let suspect = Suspect { at, goes_first: false, suspicion, receives };
        let index = self.waiting.partition_point(|other| other.rank() <= suspect.rank());
        self.waiting.insert(index, suspect);
    }

    /// Decides, once, whether the suspects go before all other records: all that are known so far, or none.
    pub(super) fn choose_side(&mut self) {
        if std::mem::replace(&mut self.has_side, true) {
            return;
        }
        let most = self.waiting.iter().map(|suspect| suspect.receives).max().unwrap_or_default();
        let goes_first = most > 0 && most.is_multiple_of(2);
        self.waiting.iter_mut().for_each(|suspect| suspect.goes_first = goes_first);
    }

    /// Whether suspects wait that go before all other records.
    pub(super) fn goes_first(&self) -> bool {
        self.waiting.first().is_some_and(|suspect| suspect.goes_first)
    }

    /// Whether a group has its turn.
    pub(super) const fn is_active(&self) -> bool {
        !self.group.is_empty()
    }

    /// Whether record `at` is in the group that has its turn.
    pub(super) fn has_turn(&self, at: usize) -> bool {
        self.group.contains(&at)
    }

    /// Whether suspects wait.
    pub(super) const fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Chooses the next group, while nothing else runs: records of one suspicion, as many as
    /// that allows, and not more than `most`.
    pub(super) fn next_group(&mut self, most: usize) -> Vec<usize> {
        let Some(first) = self.waiting.first().copied() else { return Vec::new() };
        let size = self.size(first.suspicion).min(most).max(1);
        let alike = |suspect: &Suspect| suspect.kind() == first.kind();
        let count = self.waiting.iter().take(size).take_while(|suspect| alike(suspect)).count();
        self.group = self.waiting.iter().take(count).map(|suspect| suspect.at).collect();
        self.group.clone()
    }

    /// The size of a group of this suspicion: for each step of suspicion, a quarter of the most suspects
    /// that have waited with it. Some are found late, behind others of their group or of a busy key.
    fn size(&mut self, suspicion: u32) -> usize {
        let alike = self.waiting.iter().filter(|suspect| suspect.suspicion == suspicion).count();
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
        most.div_ceil(4_usize.saturating_pow(suspicion))
    }

    /// Whether a record of the group that has its turn stays in it in this stage.
    pub(super) const fn keeps_turn(stage: Stage) -> bool {
        matches!(stage, Stage::Claiming | Stage::Ready | Stage::Running | Stage::Settling)
    }

    /// Record `at` cannot kill the process any more, or waits for another worker.
    pub(super) fn leave(&mut self, at: usize) {
        self.group.retain(|member| *member != at);
    }

    /// Record `at` does not wait for its turn any more.
    pub(super) fn remove(&mut self, at: usize) {
        if let Some(index) = self.waiting.iter().position(|suspect| suspect.at == at) {
            self.waiting.remove(index);
        }
    }

    /// The suspects that wait for their turn.
    pub(super) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.waiting.iter().map(|suspect| suspect.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many attempts were lost, all one after the other.
    const fn lost(losses: u32) -> Attempts {
        Attempts { tried: losses, losses }
    }

    /// Suspects by their losses and receives, numbered from 0, with their side chosen.
    fn quarantine(suspects: &[(u32, u32)]) -> Quarantine {
        let mut quarantine = Quarantine::default();
        for (at, (losses, receives)) in suspects.iter().enumerate() {
            quarantine.add(at, lost(*losses), *receives);
        }
        quarantine.choose_side();
        quarantine
    }

    fn groups(suspects: &[(u32, u32)], most: usize) -> Vec<Vec<usize>> {
        let mut quarantine = quarantine(suspects);
        let mut groups = Vec::new();
        while quarantine.is_waiting() {
            let group = quarantine.next_group(most);
            for at in &group {
                quarantine.remove(*at);
                quarantine.leave(*at);
            }
            groups.push(group);
        }
        groups
    }

    fn sizes(suspects: &[(u32, u32)], most: usize) -> Vec<usize> {
        groups(suspects, most).iter().map(Vec::len).collect()
    }

    #[test]
    fn groups_are_smaller_the_more_their_records_are_suspected() {
        assert_eq!(sizes(&[(1, 2); 10], 16), [3, 3, 3, 1], "after one death");
        assert_eq!(sizes(&[(2, 3); 10], 16), [1; 10], "after two");
        assert_eq!(sizes(&[(2, 9); 10], 16), [1; 10], "however often they were passed over");
        assert_eq!(sizes(&[(1, 2); 3], 16), [1; 3]);
        assert_eq!(sizes(&[(1, 3); 10], 16), [10], "passed over once");
        assert_eq!(sizes(&[(1, 3); 10], 4), [4, 4, 2], "as many as may run at once");
        assert_eq!(sizes(&[(u32::MAX, 0); 2], 16), [1; 2]);
    }

    #[test]
    fn a_group_has_one_suspicion_and_the_least_suspected_go_first() {
        let suspects = [(1, 2), (1, 2), (2, 3), (1, 3), (1, 4), (3, 5)];
        assert_eq!(groups(&suspects, 16), [vec![4, 3], vec![0], vec![1], vec![2], vec![5]]);
    }

    #[test]
    fn only_a_receive_without_an_attempt_takes_suspicion_away() {
        let suspicion = |tried, receives| Attempts { tried, losses: 1 }.suspicion(receives);
        assert_eq!([2, 3, 4].map(|receives| suspicion(1, receives)), [1, 0, 0]);
        assert_eq!([0, 4, 5, 6].map(|receives| suspicion(4, receives)), [1, 1, 1, 0]);
    }

    #[test]
    fn the_suspect_that_was_received_most_often_decides_for_all() {
        let goes_first = |receives: &[u32]| {
            quarantine(&receives.iter().map(|receives| (1, *receives)).collect::<Vec<_>>())
                .goes_first()
        };
        assert!(goes_first(&[2]) && goes_first(&[4, 3]) && goes_first(&[1, 4, 4]));
        assert!(!goes_first(&[3]) && !goes_first(&[4, 5]) && !goes_first(&[]));
        assert!(!goes_first(&[0]), "where receives are not counted");
    }

    #[test]
    fn suspects_that_are_found_later_go_last() {
        let mut late = quarantine(&[(1, 2)]);
        late.add(1, lost(1), 4);
        late.choose_side();
        assert!(late.goes_first());
        assert_eq!(late.next_group(16), [0]);
        late.remove(0);
        assert!(!late.goes_first());
        let mut late = quarantine(&[]);
        late.add(0, lost(1), 2);
        late.choose_side();
        assert!(!late.goes_first() && late.is_waiting());
    }
}
