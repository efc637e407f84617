//! A parsed expression.

use super::text::Text;

#[derive(Clone)]
pub(crate) enum Node {
    /// `@`.
    Current,
    Field(Text),
    Index(i64),
    /// `a.b` and `a | b`.
    Then(Box<Self>, Box<Self>),
    /// `a[*].b`: the second, applied to each item of the list that the first selects.
    Each(Box<Self>, Box<Self>),
    List(Vec<Self>),
    Hash(Vec<(Text, Self)>),
    /// The first argument that is not `null`.
    NotNull(Vec<Self>),
    /// A call of a function that decodes a text.
    Decode {
        encoding: Encoding,
        text: Box<Self>,
        /// The position of the call in the expression, in characters.
        offset: usize,
    },
}

/// The encoding that a function decodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Base64,
    Base64Gzip,
    /// `application/x-www-form-urlencoded`, one text of it.
    Url,
}

/// The shape of a value, as far as the expression alone tells it.
pub(crate) enum Known<'n> {
    /// A list of this many parts.
    List(usize),
    /// A list with an item for each item of another one.
    Items,
    Hash(&'n [(Text, Node)]),
    Nothing,
}

impl Node {
    /// The list of parts that its value always is, as in `[a, b]` and `{x: a, y: b}`.
    pub(crate) fn listed(&self) -> Option<&Self> {
        match self {
            Self::List(_) | Self::Hash(_) => Some(self),
            Self::Then(_, last) => last.listed(),
            _ => None,
        }
    }

    /// The shape of its value, unless that is `null`.
    pub(crate) fn known(&self) -> Known<'_> {
        match self {
            Self::List(parts) => Known::List(parts.len()),
            Self::Hash(parts) => Known::Hash(parts),
            Self::Each(..) => Known::Items,
            Self::Then(_, last) => last.known(),
            _ => Known::Nothing,
        }
    }

    /// Its first step.
    pub(crate) fn first(&self) -> &Self {
        match self {
            Self::Then(first, _) => first.first(),
            node => node,
        }
    }
}
