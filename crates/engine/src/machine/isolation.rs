//! The place of this invocation in its process: none, one that it waits for, or one that it has.

use std::time::Duration;

use super::host::Side;
use lambda_idempotency_core::clock::Timestamp;

/// The place of this invocation in its process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Isolation {
    place: Place,
    /// Quarantined records that are claimed as soon as the place that they need is taken.
    group: Option<(Side, Vec<usize>)>,
    /// When waiting for isolation is given up. It is set at the first wait, because all groups share the
    /// time.
    patience: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Place {
    #[default]
    None,
    Waited {
        side: Side,
        /// When waiting is given up.
        patience: Timestamp,
        /// When the invocation asks again.
        wake: Timestamp,
    },
    Taken {
        side: Side,
        until: Timestamp,
    },
}

impl Isolation {
    /// Whether this place is taken, up to `until` at least.
    pub(super) fn has(&self, side: Side, until: Timestamp) -> bool {
        matches!(self.place, Place::Taken { side: mine, until: end } if mine == side && end >= until)
    }

    /// Whether there is a place that has to be given up before this one is asked for.
    pub(super) fn has_other(&self, side: Side) -> bool {
        match self.place {
            Place::None => false,
            Place::Waited { side: mine, .. } | Place::Taken { side: mine, .. } => mine != side,
        }
    }

    /// Whether there is nothing to be given up.
    pub(super) const fn is_outside(&self) -> bool {
        matches!(self.place, Place::None)
    }

    /// Whether the isolated place is taken.
    pub(super) const fn is_isolated(&self) -> bool {
        matches!(self.place, Place::Taken { side: Side::Isolated, .. })
    }

    /// When waiting for the place is given up, if it is waited for.
    pub(super) const fn patience(&self) -> Option<Timestamp> {
        match self.place {
            Place::Waited { patience, .. } => Some(patience),
            _ => None,
        }
    }

    /// When waiting for isolation is given up: the instant of the first call, which passes it as `first`.
    pub(super) fn patience_once(&mut self, first: Timestamp) -> Timestamp {
        *self.patience.get_or_insert(first)
    }

    /// The place is taken, up to and including `until`.
    pub(super) const fn entered(&mut self, side: Side, until: Timestamp) {
        self.place = Place::Taken { side, until };
    }

    /// Others have the place up to and including `until`, as far as is known.
    pub(super) fn waits(&mut self, side: Side, until: Timestamp, patience: Timestamp) {
        let wake = until.plus(Duration::from_millis(1)).min(patience);
        self.place = Place::Waited { side, patience, wake };
    }

    /// The place was given up.
    pub(super) const fn left(&mut self) {
        self.place = Place::None;
    }

    /// When the place is to be asked for again.
    pub(super) const fn next_due(&self) -> Option<Timestamp> {
        match self.place {
            Place::Waited { wake, .. } => Some(wake),
            _ => None,
        }
    }

    /// These records need this place before they are claimed.
    pub(super) fn set_group(&mut self, side: Side, group: Vec<usize>) {
        self.group = Some((side, group));
    }

    /// The place that is needed by records that wait for it.
    pub(super) fn group_side(&self) -> Option<Side> {
        self.group.as_ref().map(|(side, _)| *side)
    }

    /// How many records wait for their place.
    pub(super) fn waiting(&self) -> usize {
        self.group.as_ref().map_or(0, |(_, group)| group.len())
    }

    /// Removes and returns those of these records that wait for their place: they will not start.
    pub(super) fn take_waiting(&mut self, which: impl Fn(usize) -> bool) -> Vec<usize> {
        let Some((_, group)) = &mut self.group else { return Vec::new() };
        let taken = group.extract_if(.., |at| which(*at)).collect();
        if group.is_empty() {
            self.group = None;
        }
        taken
    }

    /// Takes the records that wait for their place.
    pub(super) fn take_group(&mut self) -> Vec<usize> {
        self.group.take().map(|(_, group)| group).unwrap_or_default()
    }
}
