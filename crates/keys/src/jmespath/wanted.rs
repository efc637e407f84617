//! The part of a text that is parsed.

use std::collections::BTreeMap;

/// The part of a value that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    All,
    /// Whether it is present, and these members of it.
    Members(BTreeMap<String, Wanted>),
}

impl Wanted {
    pub(crate) const fn none() -> Self {
        Self::Members(BTreeMap::new())
    }

    /// Whether a document that was read with `self` has all fields of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Members(_), Self::All) => false,
            (Self::Members(read), Self::Members(wanted)) => wanted
                .iter()
                .all(|(name, wanted)| read.get(name).is_some_and(|read| read.covers(wanted))),
        }
    }

    /// Whether the member with this path is read.
    pub(crate) fn reaches(&self, member: &str) -> bool {
        let mut wanted = Some(self);
        for name in member.split('.') {
            wanted = match wanted {
                Some(Self::Members(members)) => members.get(name),
                other => other,
            };
        }
        wanted.is_some()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Members(members), Self::Members(others)) => {
                for (name, other) in others {
                    members.entry(name.clone()).or_insert_with(Self::none).merge(other);
                }
            }
            (Self::Members(_), Self::All) => *self = Self::All,
            (Self::All, _) => {}
        }
    }
}
