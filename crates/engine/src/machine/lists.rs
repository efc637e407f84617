//! The only place where a record enters a stage. Its lists follow from that.

use super::{
    Machine,
    quarantine::Quarantine,
    record::{Entry, Stage},
};

impl Machine<'_> {
    /// Record `at` enters this stage: it leaves the lists of the stage before, and joins those of the new one.
    pub(super) fn moved(&mut self, at: usize, to: Stage) {
        let entry = self.records.at(at);
        let was = entry.enter(to);
        self.starts.moved(at, was, to, entry.ran_for().is_some());
        self.waiting.moved(at, was, to);
        if was == Stage::Suspected {
            self.quarantine.remove(at);
        }
        if !Quarantine::keeps_turn(to) {
            self.quarantine.leave(at);
        }
        match (was.is_kept(), to.is_kept()) {
            (false, true) => {
                if let Some(held) = entry.held() {
                    self.leases.keep(at, held);
                }
            }
            (true, false) => self.leases.forget(at),
            _ => {}
        }
    }

    /// The records that wait: for a busy key, for their claim, for their turn in quarantine, for their handler.
    pub(super) fn not_begun(&self) -> Vec<usize> {
        let unclaimed = self.starts.unclaimed().chain(self.quarantine.waiting());
        self.waiting.all().chain(unclaimed).chain(self.starts.ready()).collect()
    }

    /// Whether each record is in the list of its stage, and in no other; not checked in batches that are large, since
    /// it is asked often.
    pub(super) fn lists_follow(&self) -> bool {
        if self.records.all().len() > 20 {
            return true;
        }
        let mut listed = self.not_begun();
        listed.sort_unstable();
        let all = self.records.all().iter().map(Entry::stage).enumerate();
        let not_begun = all.clone().filter(|(_, stage)| stage.has_not_begun()).map(|(at, _)| at);
        let in_stage = |is: fn(Stage) -> bool| all.clone().filter(|(_, stage)| is(*stage)).count();
        not_begun.eq(listed)
            && self.starts.running() == in_stage(|stage| stage == Stage::Running)
            && self.records.open() == in_stage(|stage| stage != Stage::Done)
    }
}
