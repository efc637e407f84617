//! What can be known of a value from the expression alone.

use super::jmespath::{text::Text, value::Value};

/// What is known of a value from the expression alone, before a record is read.
#[derive(Clone)]
pub(super) enum Known<'n> {
    /// The same for every record.
    Constant(Value),
    /// The same for every record that has a value, and `null` for others.
    ConstantIfThere(Value),
    /// One of a few values, because of this function or operator.
    Few(&'static str),
    /// The value at this path of fields.
    Path(Vec<&'n str>),
    List(Vec<Self>),
    Hash(Vec<(&'n Text, Self)>),
    /// A value that contains the values at these paths. An empty list means that nothing is known.
    Holding(Vec<Held<'n>>),
}

/// A path of fields whose value, except for some of its members, is part of another value.
#[derive(Clone)]
pub(super) struct Held<'n> {
    pub(super) path: Vec<&'n str>,
    pub(super) except: Vec<&'n Text>,
}

/// The most values that are tracked.
const LARGEST: usize = 1000;
pub(super) const NOTHING: Known<'static> = Known::Holding(Vec::new());

/// How many values different records can have.
pub(super) enum Variety {
    One,
    /// A few values, because of this function or operator.
    Few(&'static str),
    Unknown,
}

impl Held<'_> {
    pub(super) fn reaches(&self, member: &[&str]) -> bool {
        let next = member.get(self.path.len());
        self.path.iter().zip(member).all(|(one, other)| one == other)
            && !next.is_some_and(|next| self.except.iter().any(|name| name.is(next)))
    }
}

impl<'n> Known<'n> {
    pub(super) fn variety(&self) -> Variety {
        match self {
            Self::Constant(_) | Self::ConstantIfThere(_) => Variety::One,
            Self::Few(by) => Variety::Few(by),
            Self::List(items) => together(items.iter()),
            Self::Hash(members) => together(members.iter().map(|(_, member)| member)),
            Self::Path(_) | Self::Holding(_) => Variety::Unknown,
        }
    }

    pub(super) fn is_constant(&self) -> bool {
        matches!(self.variety(), Variety::One)
    }

    pub(super) fn few(&self) -> Option<&'static str> {
        match self.variety() {
            Variety::Few(by) => Some(by),
            Variety::One | Variety::Unknown => None,
        }
    }

    /// The paths whose values are part of this value.
    pub(super) fn held(&self) -> Vec<Held<'n>> {
        match self {
            Self::Path(path) => vec![Held { path: path.clone(), except: Vec::new() }],
            Self::List(items) => items.iter().flat_map(Self::held).collect(),
            Self::Hash(members) => members.iter().flat_map(|(_, member)| member.held()).collect(),
            Self::Holding(held) => held.clone(),
            Self::Constant(_) | Self::ConstantIfThere(_) | Self::Few(_) => Vec::new(),
        }
    }

    /// Forgets a value that is too large, because expressions can multiply values.
    pub(super) fn bounded(self) -> Self {
        if self.size() > LARGEST { NOTHING } else { self }
    }

    pub(super) fn size(&self) -> usize {
        1 + match self {
            Self::List(items) => items.iter().map(Self::size).sum(),
            Self::Hash(members) => members.iter().map(|(_, member)| member.size()).sum(),
            Self::Holding(held) => held.iter().map(|held| 1 + held.except.len()).sum(),
            Self::Path(path) => path.len(),
            Self::Constant(_) | Self::ConstantIfThere(_) | Self::Few(_) => 0,
        }
    }

    /// What is known of another value that contains this one.
    pub(super) fn kept(&self) -> Self {
        Self::Holding(self.held())
    }
}

pub(super) fn together<'k, 'n: 'k>(parts: impl Iterator<Item = &'k Known<'n>>) -> Variety {
    let mut all = Variety::One;
    for part in parts {
        match (part.variety(), &all) {
            (Variety::Unknown, _) => return Variety::Unknown,
            (Variety::Few(by), Variety::One) => all = Variety::Few(by),
            _ => {}
        }
    }
    all
}
