//! Which record may go next: one per key and, in ordered sources, one per group.
//!
//! A record waits in up to two lines: that of its key and that of its group. It may go when it is
//! first in both. Every wait is for a record that came earlier in the batch, so nothing waits in a
//! circle.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::key::Key;

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
            plan.places.push(Place { key, group });
        }
        plan
    }

    /// Whether nothing is left before `at`.
    pub(super) fn may_go(&self, at: usize) -> bool {
        let place = self.place(at);
        [place.key, place.group].into_iter().flatten().all(|line| self.first(line) == Some(at))
    }

    /// The records behind `at` that have its key.
    pub(super) fn same_key(&self, at: usize) -> Vec<usize> {
        self.behind(self.place(at).key, at)
    }

    /// The records behind `at` in its group.
    pub(super) fn same_group(&self, at: usize) -> Vec<usize> {
        self.behind(self.place(at).group, at)
    }

    /// Takes `at` out of its lines; returns the records that are now first in one of them.
    pub(super) fn leave(&mut self, at: usize) -> Vec<usize> {
        let place = self.place(at);
        let lines = [place.key, place.group].into_iter().flatten();
        lines
            .filter_map(|line: usize| {
                self.remove(line, at);
                self.first(line)
            })
            .collect()
    }

    /// Takes `at` out of the line of its key only: its outcome is known, its turn has not come.
    pub(super) fn leave_key(&mut self, at: usize) -> Option<usize> {
        let line = self.places.get_mut(at).and_then(|place| place.key.take())?;
        self.remove(line, at);
        self.first(line)
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

    fn first(&self, line: usize) -> Option<usize> {
        self.lines.get(line).and_then(|line| line.front().copied())
    }

    fn behind(&self, line: Option<usize>, at: usize) -> Vec<usize> {
        let line = line.and_then(|line| self.lines.get(line));
        line.into_iter().flatten().copied().filter(|other| *other > at).collect()
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
        assert_eq!(plan.same_key(0), [2]);
        assert_eq!(plan.leave(0), [2]);
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
        assert_eq!(plan.leave(1), [3]);
        assert!(!plan.may_go(3), "its key is still before it");
        assert_eq!(plan.leave(0), [3, 2]);
        assert!(plan.may_go(3) && plan.may_go(2));
    }

    #[test]
    fn an_outcome_can_be_known_before_its_turn() {
        let mut plan = plan(&[(Some("a"), None), (Some("b"), Some("g")), (Some("a"), Some("g"))]);
        plan.leave(0);
        assert_eq!(plan.leave_key(2), None);
        assert!(!plan.may_go(2));
        assert_eq!(plan.leave(1), [2]);
        assert!(plan.may_go(2));
    }
}
