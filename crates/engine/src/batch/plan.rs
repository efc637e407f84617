//! Which record may go next: one per key and, in ordered sources, one per group.
//!
//! A record waits in up to two lines: that of its key and that of its group. It may go when it is
//! first in both. Every wait is for a record that came earlier in the batch, so nothing waits in a
//! circle.
//!
//! Copies, the records of a key that ask for the very same, stand in a line of their own as well: by it
//! they are found when one of them has its outcome. Nobody waits in it.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

use lambda_idempotency_keys::Key;

/// The lines that the records of a batch stand in; records are numbered as in the batch.
#[derive(Debug, Default)]
pub(super) struct Plan {
    lines: Vec<VecDeque<usize>>,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    key: Option<usize>,
    group: Option<usize>,
    copies: Option<usize>,
}

impl Plan {
    /// Plans a batch from each record's key and order group.
    pub(super) fn new<'a>(
        records: impl Iterator<Item = (Option<&'a Key>, Option<&'a Arc<str>>)>,
    ) -> Self {
        let (mut keys, mut groups) = (HashMap::new(), HashMap::new());
        let mut plan = Self::default();
        for (at, (key, group)) in records.enumerate() {
            let key = key.map(|key| *keys.entry(key).or_insert_with(|| plan.new_line()));
            let group = group.map(|group| *groups.entry(group).or_insert_with(|| plan.new_line()));
            for line in [key, group].into_iter().flatten() {
                plan.line_mut(line).push_back(at);
            }
            plan.places.push(Place { key, group, copies: None });
        }
        plan
    }

    /// Finds the copies, by what each record asks for.
    pub(super) fn find_copies<A: Eq + Hash>(&mut self, asks: impl Fn(usize) -> Option<A>) {
        let mut lines = HashMap::new();
        for at in 0..self.places.len() {
            let Some(key) = self.place(at).key.filter(|key| self.has_several(*key)) else {
                continue;
            };
            let Some(asked) = asks(at) else { continue };
            let line = *lines.entry((key, asked)).or_insert_with(|| self.new_line());
            self.line_mut(line).push_back(at);
            if let Some(place) = self.places.get_mut(at) {
                place.copies = Some(line);
            }
        }
    }

    /// Whether nothing is left before `at`.
    pub(super) fn may_go(&self, at: usize) -> bool {
        let place = self.place(at);
        [place.key, place.group].into_iter().flatten().all(|line| self.first(line) == Some(at))
    }

    /// The copies of `at` behind it.
    pub(super) fn copies(&self, at: usize) -> Vec<usize> {
        self.behind(self.place(at).copies, at)
    }

    /// The records behind `at` in its group.
    pub(super) fn same_group(&self, at: usize) -> Vec<usize> {
        self.behind(self.place(at).group, at)
    }

    /// Takes `at` out of its lines; returns the records that are now first in one of them.
    pub(super) fn leave(&mut self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let place = self.place(at);
        self.leave_copies(at);
        let first = [place.key, place.group].map(|line| {
            self.remove(line?, at);
            self.first(line?)
        });
        first.into_iter().flatten()
    }

    /// Takes `at` out of the line of its key only: its outcome is known, its turn has not come.
    pub(super) fn leave_key(&mut self, at: usize) -> Option<usize> {
        self.leave_copies(at);
        let line = self.places.get_mut(at).and_then(|place| place.key.take())?;
        self.remove(line, at);
        self.first(line)
    }

    fn leave_copies(&mut self, at: usize) {
        if let Some(line) = self.place(at).copies {
            self.remove(line, at);
        }
    }

    fn remove(&mut self, line: usize, at: usize) {
        let line = self.line_mut(line);
        // Records stand in a line as in the batch; those that leave do so near its front.
        if let Ok(place) = line.binary_search(&at) {
            line.remove(place);
        }
    }

    fn new_line(&mut self) -> usize {
        self.lines.push(VecDeque::new());
        self.lines.len() - 1
    }

    #[expect(clippy::indexing_slicing, reason = "lines are only added, and numbered by `new_line`")]
    fn line_mut(&mut self, line: usize) -> &mut VecDeque<usize> {
        &mut self.lines[line]
    }

    fn has_several(&self, line: usize) -> bool {
        self.lines.get(line).is_some_and(|line| line.len() > 1)
    }

    fn first(&self, line: usize) -> Option<usize> {
        self.lines.get(line).and_then(|line| line.front().copied())
    }

    fn behind(&self, line: Option<usize>, at: usize) -> Vec<usize> {
        let Some(line) = line.and_then(|line| self.lines.get(line)) else { return Vec::new() };
        let before = line.partition_point(|other| *other <= at);
        line.range(before..).copied().collect()
    }

    fn place(&self, at: usize) -> Place {
        self.places.get(at).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(records: &[(Option<&str>, Option<&str>)]) -> Plan {
        let records: Vec<_> = records
            .iter()
            .map(|(key, group)| (key.map(Key::from_text), group.map(Arc::<str>::from)))
            .collect();
        Plan::new(records.iter().map(|(key, group)| (key.as_ref(), group.as_ref())))
    }

    #[test]
    fn one_a_key_goes_at_a_time() {
        let mut plan =
            plan(&[(Some("a"), None), (Some("b"), None), (Some("a"), None), (None, None)]);
        let going: Vec<_> = (0..4).filter(|at| plan.may_go(*at)).collect();
        assert_eq!(going, [0, 1, 3]);
        assert!(plan.leave(0).eq([2]));
        assert!(plan.may_go(2));
    }

    #[test]
    fn one_a_group_goes_at_a_time() {
        let mut plan = plan(&[
            (Some("a"), Some("g")),
            (Some("b"), Some("h")),
            (Some("c"), Some("g")),
            (Some("a"), Some("h")),
        ]);
        let going: Vec<_> = (0..4).filter(|at| plan.may_go(*at)).collect();
        assert_eq!(going, [0, 1]);
        assert!(plan.leave(1).eq([3]));
        assert!(!plan.may_go(3), "its key is still before it");
        assert!(plan.leave(0).eq([3, 2]));
        assert!(plan.may_go(3) && plan.may_go(2));
    }

    #[test]
    fn copies_have_the_key_and_ask_for_the_same() {
        let keys = ["a", "a", "b", "a", "a", "b"].map(|key| (Some(key), None));
        let mut plan = plan(&keys);
        plan.find_copies(|at| Some(["x", "y", "x", "x", "x", "y"][at]));
        let copies: Vec<_> = (0..6).map(|at| plan.copies(at)).collect();
        assert_eq!(copies, [vec![3, 4], vec![], vec![], vec![4], vec![], vec![]]);
        plan.leave_key(3);
        assert_eq!(plan.copies(0), [4]);
        assert_eq!(plan.leave(4).count(), 1);
        assert!(plan.copies(0).is_empty());
    }

    #[test]
    fn an_outcome_can_be_known_before_its_turn() {
        let mut plan = plan(&[(Some("a"), None), (Some("b"), Some("g")), (Some("a"), Some("g"))]);
        assert!(plan.leave(0).eq([2]));
        assert_eq!(plan.leave_key(2), None);
        assert!(!plan.may_go(2));
        assert!(plan.leave(1).eq([2]));
        assert!(plan.may_go(2));
    }
}
