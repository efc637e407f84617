//! The records of the batch, by number.

use super::{
    ask::Ask,
    record::{Entry, Stage},
};

/// The records of a batch, numbered in the order of the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Records<'a> {
    entries: Vec<Entry<'a>>,
    /// How many of them have no outcome yet.
    open: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(asks: impl Iterator<Item = Ask<'a>>) -> Self {
        let entries: Vec<_> = asks.map(Entry::new).collect();
        Self { open: entries.len(), entries }
    }

    pub(super) fn all(&self) -> &[Entry<'a>] {
        &self.entries
    }

    pub(super) fn get(&self, at: usize) -> Option<&Entry<'a>> {
        self.entries.get(at)
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn at(&mut self, at: usize) -> &mut Entry<'a> {
        &mut self.entries[at]
    }

    pub(super) const fn open(&self) -> usize {
        self.open
    }

    /// Record `at` has its outcome.
    pub(super) fn done(&mut self, at: usize) {
        self.at(at).done();
        self.open -= 1;
    }

    /// The records that have reached this stage.
    pub(super) fn in_stage(&self, stage: Stage) -> Vec<usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(|(_, entry)| entry.stage() == stage).map(|(at, _)| at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_idempotency_keys::Key;

    #[test]
    fn a_record_is_done_when_it_has_its_outcome() {
        let asks = ["op#a", "op#b"].map(|key| Ask::keyed(Key::from_text(key)));
        let mut records = Records::new(asks.into_iter());
        assert_eq!(records.open(), 2);
        records.done(1);
        assert_eq!(records.open(), 1);
    }
}
