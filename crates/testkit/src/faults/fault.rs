//! One fault, and the calls that it applies to.

use std::{fmt, sync::Arc, time::Duration};

use lambda_idempotency_core::{
    clock::Clock,
    key::Key,
    record::Status,
    store::{Guard, StoreErrorKind, Write},
};

/// The kinds of [`Guard`], to select writes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GuardKind {
    /// [`Guard::Absent`]: a first claim.
    Absent,
    /// [`Guard::Unchanged`]: a takeover or a renewal.
    Unchanged,
    /// [`Guard::OwnedBy`]: a settlement.
    OwnedBy,
}

impl From<&Guard> for GuardKind {
    fn from(guard: &Guard) -> Self {
        match guard {
            Guard::Absent => Self::Absent,
            Guard::Unchanged(_) => Self::Unchanged,
            Guard::OwnedBy(_) => Self::OwnedBy,
        }
    }
}

/// A store fault, for [`FaultyStore::inject`](super::FaultyStore::inject).
///
/// Start with a constructor for what happens, then select the calls. By default, a fault applies
/// once, to all members of the first write call.
///
/// ```
/// use lambda_idempotency_core::{key::Key, record::Status, store::StoreErrorKind};
/// use lambda_idempotency_testkit::faults::{Fault, GuardKind};
///
/// // The answer to the first completion is lost.
/// let _ = Fault::lose_answer().that_writes(Status::Completed);
/// // The second and third claims of one key are throttled; the rest of their batches is not.
/// let _ = Fault::refuse(StoreErrorKind::Throttled)
///     .guarded_by(GuardKind::Absent)
///     .for_key(&Key::from_text("k"))
///     .nth(2)
///     .times(2);
/// ```
pub struct Fault {
    pub(super) action: Action,
    reads: bool,
    filters: Vec<Filter>,
    skip: usize,
    left: usize,
    dice: Option<Dice>,
}

type Filter = Box<dyn Fn(Target<'_>) -> bool + Send + Sync>;

/// One member of a call.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    Write(&'a Write),
    Read(&'a Key),
}

#[derive(Clone)]
pub(super) enum Action {
    Refuse(StoreErrorKind),
    LoseAnswer,
    Delay { clock: Arc<dyn Clock>, before: Duration, after: Duration },
    Duplicate { later: usize },
}

impl Fault {
    fn new(action: Action) -> Self {
        Self { action, reads: false, filters: Vec::new(), skip: 0, left: 1, dice: None }
    }

    /// The members are not applied, and answered with an error of this kind.
    #[must_use]
    pub fn refuse(kind: StoreErrorKind) -> Self {
        Self::new(Action::Refuse(kind))
    }

    /// The members are applied, but their response is lost and the verdict is
    /// [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn lose_answer() -> Self {
        Self::new(Action::LoseAnswer)
    }

    /// The call reaches the store only after `duration` on `clock`. If its deadline comes first, it
    /// never reaches the store, and the verdict at the deadline is
    /// [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn delay(clock: impl Clock, duration: Duration) -> Self {
        let clock = Arc::new(clock);
        Self::new(Action::Delay { clock, before: duration, after: Duration::ZERO })
    }

    /// The call is applied at once, and its response takes `duration` on `clock`. If its deadline
    /// comes first, the response is lost, and the verdict at the deadline is
    /// [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn delay_answer(clock: impl Clock, duration: Duration) -> Self {
        let clock = Arc::new(clock);
        Self::new(Action::Delay { clock, before: Duration::ZERO, after: duration })
    }

    /// The members are applied twice, the second time after `later` further write calls (0: right
    /// after the first time), as by a network that repeats a request. The second response is
    /// dropped.
    #[must_use]
    pub fn duplicate(later: usize) -> Self {
        Self::new(Action::Duplicate { later })
    }

    /// Applies to reads instead of writes.
    #[must_use]
    pub fn on_reads(mut self) -> Self {
        self.reads = true;
        self
    }

    /// Applies only to members with this key.
    #[must_use]
    pub fn for_key(self, key: &Key) -> Self {
        let wanted = key.clone();
        self.for_keys(move |key| *key == wanted)
    }

    /// Applies only to members whose key passes `which`.
    #[must_use]
    pub fn for_keys(mut self, which: impl Fn(&Key) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Box::new(move |target| match target {
            Target::Write(write) => which(&write.key),
            Target::Read(key) => which(key),
        }));
        self
    }

    /// Applies only to writes with a guard of this kind.
    #[must_use]
    pub fn guarded_by(self, kind: GuardKind) -> Self {
        self.for_writes(move |write| GuardKind::from(&write.guard) == kind)
    }

    /// Applies only to writes of a record with this status.
    #[must_use]
    pub fn that_writes(self, status: Status) -> Self {
        self.for_writes(move |write| write.record.as_ref().is_some_and(|r| r.status == status))
    }

    /// Applies only to writes that pass `which`.
    #[must_use]
    pub fn for_writes(mut self, which: impl Fn(&Write) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Box::new(move |target| match target {
            Target::Write(write) => which(write),
            Target::Read(_) => false,
        }));
        self
    }

    /// Applies from the `n`th matching call on (the first is 1).
    #[must_use]
    pub fn nth(mut self, n: usize) -> Self {
        self.skip = n.saturating_sub(1);
        self
    }

    /// Applies to `count` matching calls.
    #[must_use]
    pub fn times(mut self, count: usize) -> Self {
        self.left = count;
        self
    }

    /// Applies to every matching call.
    #[must_use]
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Applies to one in `n` matching calls on average, in a sequence that `seed` decides, without
    /// end (implies [`always`](Self::always)).
    #[must_use]
    pub fn one_in(mut self, n: u64, seed: u64) -> Self {
        self.dice = Some(Dice { state: seed, sides: n.max(1) });
        self.always()
    }

    /// The members of a call that it applies to; `None` if it does not apply to the call. Counts
    /// the call.
    pub(super) fn strike(&mut self, call: &[Target<'_>]) -> Option<Vec<bool>> {
        let struck: Vec<bool> = call.iter().map(|target| self.matches(*target)).collect();
        if !struck.contains(&true) || self.left == 0 {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        if self.dice.as_mut().is_some_and(|dice| !dice.hits()) {
            return None;
        }
        self.left -= 1;
        Some(struck)
    }

    fn matches(&self, target: Target<'_>) -> bool {
        matches!(target, Target::Read(_)) == self.reads
            && self.filters.iter().all(|filter| filter(target))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match &self.action {
            Action::Refuse(kind) => format!("refuse({kind:?})"),
            Action::LoseAnswer => "lose_answer".to_owned(),
            Action::Delay { before, after, .. } => format!("delay({before:?}, {after:?})"),
            Action::Duplicate { later } => format!("duplicate({later})"),
        };
        f.debug_struct("Fault")
            .field("action", &action)
            .field("reads", &self.reads)
            .field("filters", &self.filters.len())
            .field("skip", &self.skip)
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// SplitMix64: small, and the same everywhere.
struct Dice {
    state: u64,
    sides: u64,
}

impl Dice {
    fn hits(&mut self) -> bool {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)).is_multiple_of(self.sides)
    }
}
