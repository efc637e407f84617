//! The records of the batch, by number.

use super::{
    ask::Ask,
    entry::{Entry, Stage},
};
use lambda_idempotency_keys::Key;

/// The records of a batch, and what puts some of them aside. They are numbered in the order of the
/// event; what is added later comes behind.
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

    /// The position in the event of record `at`, or of the record that it puts aside.
    pub(super) fn position(&self, at: usize) -> usize {
        self.get(at).and_then(Entry::stands_for).unwrap_or(at)
    }

    pub(super) fn get(&self, at: usize) -> Option<&Entry<'a>> {
        self.entries.get(at)
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `entries` is")]
    pub(super) fn at(&mut self, at: usize) -> &mut Entry<'a> {
        &mut self.entries[at]
    }

    /// Adds the work of putting record `of` aside, as the [`next`](Self::next) record.
    pub(super) fn add_aside(&mut self, of: usize, key: Key) {
        self.entries.push(Entry::aside(of, key));
        self.open += 1;
    }

    /// The number of the next record that is added.
    pub(super) const fn next(&self) -> usize {
        self.entries.len()
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

    #[test]
    fn a_record_is_done_when_it_has_its_outcome() {
        let mut records = Records::new([Ask::aside(Key::from_text("op#a"))].into_iter());
        records.add_aside(0, Key::from_text("op#b"));
        assert_eq!(records.open(), 2);
        records.done(1);
        assert_eq!(records.open(), 1);
    }
}
