//! Records that may have killed their process: which of them run together, and when.
//!
//! A record whose last attempts were lost is a suspect; the number of its losses in a row is all that is stored of that.
//! Suspects that were lost once run all together, suspects that were lost more often one at a time, those with the fewest
//! losses first, with nothing else of the invocation beside them. So the many records that were only near a death are
//! processed soon, and the one that kills is soon alone.
//!
//! The suspects of an invocation go before all its other records, or after them: before them if the suspect that was
//! received most often was received an even number of times. So where an invocation has time for one of the two only,
//! they take turns. If each suspect had a side of its own, two of them that kill would take turns, and the other
//! records would never start.
//!
//! At odd receives, from the third on, a suspect that goes last and was lost three times does not start once another record
//! of the invocation is acknowledged: if it killed the process, the source would not learn of that, and the record that is
//! done would come again and again beside the one that kills. At even receives it starts, and so it does where receives are
//! not counted: none waits without end, also where a source delivers records that are done for as long as one of their
//! batch is returned. As for the side, one count decides for all: that of the suspect that was received most often, or of
//! the record that was if all suspects are found later.

use std::cmp::Reverse;

/// So many losses in a row keep a suspect that goes last from starting once another record is acknowledged. Records that
/// were near one death have mostly run after two.
const HELD_BACK: u32 = 3;

/// A record that may have killed its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Suspect {
    at: usize,
    /// How many attempts were lost one after the other, up to the last.
    losses: u32,
    receives: u32,
}

impl Suspect {
    /// The order in which suspects go.
    const fn rank(&self) -> (u32, Reverse<u32>) {
        (self.losses, Reverse(self.receives))
    }
}

/// The records in quarantine that wait for their turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Quarantine {
    /// Suspects that go before all other records, in the order in which they go.
    first: Vec<Suspect>,
    /// Suspects that go after all other records.
    last: Vec<Suspect>,
    /// Whether suspects that go last may be held back.
    gives_way: bool,
    /// Whether a record of the invocation is acknowledged.
    is_acknowledged: bool,
}

impl Quarantine {
    /// The last attempts of record `at` were lost, so many in a row, and it was received so often. It goes last, until a side
    /// is chosen.
    pub(super) fn add(&mut self, at: usize, losses: u32, receives: u32) {
        let suspect = Suspect { at, losses, receives };
        let index = self.last.partition_point(|other| other.rank() <= suspect.rank());
        self.last.insert(index, suspect);
    }

    /// Decides whether the suspects go before all other records: all that are known so far, or none. `most` is how often a
    /// record of the invocation was received, at most.
    pub(super) fn choose_side(&mut self, most: u32) {
        let most = self.last.iter().map(|suspect| suspect.receives).max().unwrap_or(most);
        self.gives_way = most > 1 && !most.is_multiple_of(2);
        if most > 0 && most.is_multiple_of(2) {
            self.first = std::mem::take(&mut self.last);
        }
    }

    /// Whether suspects wait that go before all other records.
    pub(super) const fn goes_first(&self) -> bool {
        !self.first.is_empty()
    }

    /// Whether suspects wait.
    pub(super) const fn is_waiting(&self) -> bool {
        self.goes_first() || !self.last.is_empty()
    }

    /// A record of the invocation has its outcome, and is acknowledged or not.
    pub(super) const fn ended(&mut self, is_acknowledged: bool) {
        self.is_acknowledged |= is_acknowledged;
    }

    /// The suspects that are not started any more, because another record is acknowledged.
    pub(super) fn held_back(&self) -> Vec<usize> {
        let is_time = self.is_acknowledged && self.gives_way;
        let held = |suspect: &&Suspect| is_time && suspect.losses >= HELD_BACK;
        self.last.iter().filter(held).map(|suspect| suspect.at).collect()
    }

    /// The next group, while nothing else runs: all that were lost once, but not more than `most`, or one that was lost more
    /// often.
    pub(super) fn next_group(&self, most: usize) -> Vec<usize> {
        let next = if self.goes_first() { &self.first } else { &self.last };
        let losses = next.first().map_or(0, |suspect| suspect.losses);
        let most = if losses > 1 { 1 } else { most.max(1) };
        let group = next.iter().take(most).take_while(|suspect| suspect.losses == losses);
        group.map(|suspect| suspect.at).collect()
    }

    /// Record `at` does not wait for its turn any more.
    pub(super) fn remove(&mut self, at: usize) {
        for waiting in [&mut self.first, &mut self.last] {
            waiting.retain(|suspect| suspect.at != at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Suspects by their losses and receives, numbered from 0, with their side chosen.
    fn quarantine(suspects: &[(u32, u32)]) -> Quarantine {
        let mut quarantine = Quarantine::default();
        for (at, (losses, receives)) in suspects.iter().enumerate() {
            quarantine.add(at, *losses, *receives);
        }
        quarantine.choose_side(9);
        quarantine
    }

    fn groups(suspects: &[(u32, u32)], most: usize) -> Vec<Vec<usize>> {
        let mut quarantine = quarantine(suspects);
        let mut groups = Vec::new();
        while quarantine.is_waiting() {
            let group = quarantine.next_group(most);
            group.iter().for_each(|at| quarantine.remove(*at));
            groups.push(group);
        }
        groups
    }

    fn sizes(suspects: &[(u32, u32)], most: usize) -> Vec<usize> {
        groups(suspects, most).iter().map(Vec::len).collect()
    }

    #[test]
    fn suspects_that_were_lost_once_run_together_and_others_one_at_a_time() {
        assert_eq!(sizes(&[(1, 2); 10], 16), [10], "after one death");
        assert_eq!(sizes(&[(1, 2); 10], 4), [4, 4, 2], "as many as may run at once");
        assert_eq!(sizes(&[(2, 3); 10], 16), [1; 10], "after two");
        assert_eq!(sizes(&[(u32::MAX, 0); 2], 16), [1; 2]);
    }

    #[test]
    fn the_fewest_losses_go_first() {
        let suspects = [(1, 2), (2, 2), (2, 3), (1, 3), (1, 4), (3, 5)];
        assert_eq!(groups(&suspects, 16), [vec![4, 3, 0], vec![2], vec![1], vec![5]]);
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
        late.add(1, 1, 4);
        assert!(late.goes_first());
        assert_eq!(late.next_group(16), [0]);
        late.remove(0);
        assert!(!late.goes_first());
        let mut late = quarantine(&[]);
        late.add(0, 1, 2);
        assert!(!late.goes_first() && late.is_waiting());
    }

    #[test]
    fn three_losses_hold_a_suspect_that_goes_last_back_once_another_record_is_acknowledged() {
        let held = |suspects: &[(u32, u32)]| {
            let mut quarantine = quarantine(suspects);
            assert_eq!(quarantine.held_back(), [0; 0], "nothing is acknowledged");
            quarantine.ended(true);
            quarantine.held_back()
        };
        assert_eq!(held(&[(3, 5), (2, 5), (4, 3)]), [0, 2]);
        assert_eq!(held(&[(3, 4), (3, 6)]), [0; 0], "they go first");
        assert_eq!(held(&[(3, 0)]), [0; 0], "receives are not counted");
        assert_eq!(held(&[(3, 1)]), [0; 0], "they may be counted anew each time");
        for (first, found) in [(&[][..], &[0, 1][..]), (&[(1, 3)], &[0, 1]), (&[(1, 2)], &[])] {
            let mut late = quarantine(first);
            late.add(0, 3, 3);
            late.add(1, 3, 4);
            late.ended(true);
            let mut held = late.held_back();
            held.sort_unstable();
            assert_eq!(held, found, "all that are found later, or none");
        }
    }
}
