//! What an expression selects from a record, or why that can be no key.

use std::fmt;

use super::jmespath::Collision;

/// The canonical bytes of what an expression selected.
#[derive(Clone, PartialEq, Eq)]
pub struct Selection(pub(super) Vec<u8>);

impl Selection {
    /// The bytes. They are the raw key: not for logs.
    #[must_use]
    pub fn canonical_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({} bytes)", self.0.len())
    }
}

/// Why a record has no key under an expression. Says what is wrong, never what was selected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// Nothing, or `null`, was selected.
    #[error("it selects nothing (or null)")]
    Missing,
    /// `""`, `[]` or `{}` was selected.
    #[error("it selects something empty")]
    Empty,
    /// One part of a list of parts is missing or `null`.
    #[error("part {part} of it selects nothing (or null)")]
    PartMissing {
        /// Its place (from 1) or its name.
        part: String,
    },
    /// One part of a list of parts is `""`, `[]` or `{}`.
    #[error("part {part} of it selects something empty")]
    PartEmpty {
        /// Its place (from 1) or its name.
        part: String,
    },
    /// Each part of a list is missing or empty, though they are optional one by one.
    #[error("each of its parts is missing, null or empty; one must be there")]
    AllMissing,
    /// More than 8 MiB; under Powertools, 64 MiB as that writes it. Or the expression puts together more
    /// than 8 Mi items, or 64 MiB of text, on the way.
    #[error("it selects more than a key is made of; select less of the record")]
    TooLong,
    /// The document was [read](super::Document::read) for other expressions.
    #[error("the document was read for other expressions, and lacks what this one looks at")]
    Unread,
    /// A number that a double cannot hold exactly: two distinct ones could look the same.
    #[error(
        "it selects a number that a double cannot hold exactly; \
         send it as a string, or as an integer of at most 64 bits"
    )]
    InexactNumber,
    /// An expression reference (`&name`), which is no value.
    #[error("it selects an expression reference, which is no value")]
    NotAValue,
    /// With keys of another library: distinct records could get this key.
    #[error(
        "{0}, so that distinct records could share its key; \
         send what is exact, or choose `PowertoolsKeys::accept_collisions`"
    )]
    Collision(Collision),
    /// A function met a value it cannot take.
    #[error("it cannot be evaluated here: {reason} (at offset {offset})")]
    Evaluation {
        /// What went wrong: types and counts, never values.
        reason: String,
        /// Where in the expression.
        offset: usize,
    },
}

impl SelectionError {
    /// Whether the record has no key, as opposed to one that cannot be used: something that is
    /// selected is missing, `null` or empty.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Missing
                | Self::Empty
                | Self::PartMissing { .. }
                | Self::PartEmpty { .. }
                | Self::AllMissing
        )
    }
}
