//! Which record may go next: one per key and, in ordered sources, one per group.
//!
//! A record waits in up to two queues: that of its key and that of its group. It may go when it is
//! first in both. Every wait is for a record that came earlier in the batch, so nothing waits in a
//! circle.
//!
//! A group stops behind a record that is returned: the table closes the records of [`Order::same_group`].
//!
//! Copies, the records of a key with equal content, are in a third queue, in which none of them waits: it
//! finds them when one of them has its outcome.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
};

use lambda_idempotency_keys::Key;

/// The queues that the records of a batch wait in. Records are numbered as in the batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Order {
    queues: Vec<VecDeque<usize>>,
    memberships: Vec<Membership>,
}

/// The queues that a record is in, by their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Membership {
    key: Option<usize>,
    group: Option<usize>,
    copies: Option<usize>,
}

impl Order {
    /// Plans a batch from each record's key and order group.
    pub(super) fn new<'a>(
        records: impl Iterator<Item = (Option<&'a Key>, Option<&'a Arc<str>>)>,
    ) -> Self {
        let (count, _) = records.size_hint();
        let (mut keys, mut groups) = (HashMap::with_capacity(count), HashMap::new());
        let mut order = Self { queues: Vec::new(), memberships: Vec::with_capacity(count) };
        for (at, (key, group)) in records.enumerate() {
            order.memberships.push(Membership::default());
            if let Some(key) = key {
                order
                    .queue_up(at, *keys.entry(key).or_insert(at), |membership| &mut membership.key);
            }
            if let Some(group) = group {
                order.queue_up(at, *groups.entry(group).or_insert(at), |membership| {
                    &mut membership.group
                });
            }
        }
        order
    }

    /// Puts `at` behind `first`, the first record of its key or group. That one has no queue before it
    /// has company: mostly it stays alone, and an event can hold very many records.
    fn queue_up(
        &mut self,
        at: usize,
        first: usize,
        part: fn(&mut Membership) -> &mut Option<usize>,
    ) {
        if at == first {
            return;
        }
        let queue = *part(self.membership_mut(first));
        let queue = queue.unwrap_or_else(|| {
            let queue = self.new_queue();
            self.queue_mut(queue).push_back(first);
            *part(self.membership_mut(first)) = Some(queue);
            queue
        });
        self.queue_mut(queue).push_back(at);
        *part(self.membership_mut(at)) = Some(queue);
    }

    /// Finds the copies, by what each record asks for.
    pub(super) fn find_copies<A: Eq + Hash>(&mut self, asks: impl Fn(usize) -> A) {
        let mut queues = HashMap::new();
        for at in 0..self.memberships.len() {
            let Some(key) = self.membership(at).key else { continue };
            let queue = *queues.entry((key, asks(at))).or_insert_with(|| self.new_queue());
            self.queue_mut(queue).push_back(at);
            self.membership_mut(at).copies = Some(queue);
        }
    }

    /// Whether nothing is left before `at`.
    pub(super) fn may_go(&self, at: usize) -> bool {
        let queues = self.membership(at);
        [queues.key, queues.group].into_iter().flatten().all(|queue| self.first(queue) == Some(at))
    }

    /// The copies of `at` behind it.
    pub(super) fn copies(&self, at: usize) -> Vec<usize> {
        self.behind(self.membership(at).copies, at)
    }

    /// The records behind `at` in its group.
    pub(super) fn same_group(&self, at: usize) -> Vec<usize> {
        self.behind(self.membership(at).group, at)
    }

    /// Takes `at` out of its queues; returns the records that are now first in one of them.
    pub(super) fn leave(&mut self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let queues = self.membership(at);
        self.leave_copies(at);
        let first = [queues.key, queues.group].map(|queue| {
            self.remove(queue?, at);
            self.first(queue?)
        });
        first.into_iter().flatten()
    }

    /// Takes `at` out of the queue of its key only: its outcome is known, its turn has not come.
    pub(super) fn leave_key(&mut self, at: usize) {
        self.leave_copies(at);
        if let Some(queue) = self.membership_mut(at).key.take() {
            self.remove(queue, at);
        }
    }

    fn leave_copies(&mut self, at: usize) {
        if let Some(queue) = self.membership(at).copies {
            self.remove(queue, at);
        }
    }

    fn remove(&mut self, queue: usize, at: usize) {
        let queue = self.queue_mut(queue);
        // A queue is in the order of the batch, and records mostly leave near its front.
        if let Ok(index) = queue.binary_search(&at) {
            queue.remove(index);
        }
    }

    fn new_queue(&mut self) -> usize {
        self.queues.push(VecDeque::new());
        self.queues.len() - 1
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "queues are only added, and numbered by `new_queue`"
    )]
    fn queue_mut(&mut self, queue: usize) -> &mut VecDeque<usize> {
        &mut self.queues[queue]
    }

    #[expect(clippy::indexing_slicing, reason = "records are numbered as `memberships` is")]
    fn membership_mut(&mut self, at: usize) -> &mut Membership {
        &mut self.memberships[at]
    }

    fn first(&self, queue: usize) -> Option<usize> {
        self.queues.get(queue).and_then(|queue| queue.front().copied())
    }

    fn behind(&self, queue: Option<usize>, at: usize) -> Vec<usize> {
        let Some(queue) = queue.and_then(|queue| self.queues.get(queue)) else { return Vec::new() };
        let before = queue.partition_point(|other| *other <= at);
        queue.range(before..).copied().collect()
    }

    fn membership(&self, at: usize) -> Membership {
        self.memberships.get(at).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(records: &[(Option<&str>, Option<&str>)]) -> Order {
        let records: Vec<_> = records
            .iter()
            .map(|(key, group)| (key.map(Key::from_text), group.map(Arc::<str>::from)))
            .collect();
        Order::new(records.iter().map(|(key, group)| (key.as_ref(), group.as_ref())))
    }

    #[test]
    fn one_a_key_goes_at_a_time() {
        let mut order =
            order(&[(Some("a"), None), (Some("b"), None), (Some("a"), None), (None, None)]);
        let going: Vec<_> = (0..4).filter(|at| order.may_go(*at)).collect();
        assert_eq!(going, [0, 1, 3]);
        assert!(order.leave(0).eq([2]));
        assert!(order.may_go(2));
    }

    #[test]
    fn one_a_group_goes_at_a_time() {
        let mut order = order(&[
            (Some("a"), Some("g")),
            (Some("b"), Some("h")),
            (Some("c"), Some("g")),
            (Some("a"), Some("h")),
        ]);
        let going: Vec<_> = (0..4).filter(|at| order.may_go(*at)).collect();
        assert_eq!(going, [0, 1]);
        assert!(order.leave(1).eq([3]));
        assert!(!order.may_go(3), "its key is still before it");
        assert!(order.leave(0).eq([3, 2]));
        assert!(order.may_go(3) && order.may_go(2));
    }

    #[test]
    fn copies_have_the_key_and_ask_for_the_same() {
        let keys = ["a", "a", "b", "a", "a", "b"].map(|key| (Some(key), None));
        let mut order = order(&keys);
        order.find_copies(|at| ["x", "y", "x", "x", "x", "y"][at]);
        let copies: Vec<_> = (0..6).map(|at| order.copies(at)).collect();
        assert_eq!(copies, [vec![3, 4], vec![], vec![], vec![4], vec![], vec![]]);
        order.leave_key(3);
        assert_eq!(order.copies(0), [4]);
        assert_eq!(order.leave(4).count(), 1);
        assert!(order.copies(0).is_empty());
    }

    #[test]
    fn an_outcome_can_be_known_before_its_turn() {
        let mut order = order(&[(Some("a"), None), (Some("b"), Some("g")), (Some("a"), Some("g"))]);
        assert!(order.leave(0).eq([2]));
        order.leave_key(2);
        assert!(!order.may_go(2));
        assert!(order.leave(1).eq([2]));
        assert!(order.may_go(2));
    }
}
