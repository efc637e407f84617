//! A [`Guard`] as the beginning of the record that has to be there.

use lambda_idempotency_core::{record::Status, store::Guard};

use crate::item::{head, status};

/// What the stored record has to begin with; `None` if there may be none.
pub(crate) fn beginning(guard: &Guard) -> Option<String> {
    match guard {
        Guard::Absent => None,
        Guard::OwnedBy(owner) => Some(format!("{} {owner} ", status(Status::InProgress))),
        Guard::Unchanged(seen) => Some(head(seen)),
    }
}
