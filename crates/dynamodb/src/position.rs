//! The cursors of an index.

use lambda_idempotency_core::{browse::Cursor, store::StoreErrorKind};

use crate::{error::Failure, shard::SHARDS};

/// A position in the index: in this shard, after the item of this primary key.
pub(crate) struct Position<'c> {
    pub(crate) shard: u32,
    /// The partition key, and the sort key or nothing.
    pub(crate) after: Option<(&'c str, &'c str)>,
}

impl<'c> Position<'c> {
    pub(crate) fn text(&self) -> String {
        let Self { shard, after } = self;
        let after = after.map(|(partition, sort)| format!("{}:{partition}{sort}", partition.len()));
        format!("{shard} {}", after.unwrap_or_default())
    }

    pub(crate) fn read(text: &'c str) -> Option<Self> {
        let (shard, after) = text.split_once(' ')?;
        let shard = shard.parse().ok().filter(|shard| *shard < SHARDS)?;
        if after.is_empty() {
            return Some(Self { shard, after: None });
        }
        let (length, both) = after.split_once(':')?;
        let after = both.split_at_checked(length.parse().ok()?)?;
        Some(Self { shard, after: Some(after) })
    }
}

/// Whether a cursor is of an index. Read from the table, it would be a place anywhere, and what is before would be missing.
pub(crate) fn is_of_index(cursor: &Cursor) -> bool {
    Position::read(cursor.as_str()).is_some()
}

/// A cursor of the other listing: the store was built with an index since, or without one.
pub(crate) fn other_listing(what: &str) -> Failure {
    let context = format!("a cursor that is not of {what}: begin without one");
    Failure::new(StoreErrorKind::Refused, context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        for after in [None, Some(("op#1", "")), Some(("a 7:ü", "op#1"))] {
            let text = Position { shard: 7, after }.text();
            let read = Position::read(&text).unwrap();
            assert_eq!((read.shard, read.after), (7, after), "{text}");
        }
        for text in ["", "op#1", "64 ", "1 4:op"] {
            assert!(Position::read(text).is_none(), "{text}");
        }
    }
}
