//! Records that may have killed their process: each runs alone, when nothing else does.

/// A record that may have killed its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Suspect {
    at: usize,
    lost: u32,
    priority: u32,
}

/// Who is in quarantine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Quarantine {
    waiting: Vec<Suspect>,
    /// The one that is being claimed or runs: nothing else is started meanwhile.
    turn: Option<usize>,
}

impl Quarantine {
    /// Record `at` has lost this many attempts. What has lost more, or was received more often, goes
    /// first.
    pub(super) fn add(&mut self, at: usize, lost: u32, priority: u32) {
        let suspect = Suspect { at, lost, priority };
        let rank = |suspect: &Suspect| (suspect.lost, suspect.priority);
        let place = self.waiting.partition_point(|other| rank(other) >= rank(&suspect));
        self.waiting.insert(place, suspect);
    }

    /// Whether one of them has its turn.
    pub(super) const fn is_active(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether record `at` has its turn.
    pub(super) fn has_turn(&self, at: usize) -> bool {
        self.turn == Some(at)
    }

    /// Whether quarantine lets record `at` start.
    pub(super) fn admits(&self, at: usize) -> bool {
        !self.is_active() || self.has_turn(at)
    }

    /// Gives the next record its turn, while nothing else runs.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.waiting.is_empty() {
            return None;
        }
        let at = self.waiting.remove(0).at;
        self.turn = Some(at);
        Some(at)
    }

    /// Record `at` has its outcome, or waits for another worker.
    pub(super) fn leave(&mut self, at: usize) {
        if self.has_turn(at) {
            self.turn = None;
        }
    }

    /// Ends quarantine: nothing is started any more.
    pub(super) fn take_waiting(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.waiting).into_iter().map(|suspect| suspect.at).collect()
    }
}
