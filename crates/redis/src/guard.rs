//! A [`Guard`] as the beginning of the record that has to be there.

use lambda_idempotency_core::{record::Status, store::Guard};

use crate::item::{head, status};

/// The beginning that the stored record has to have; nothing if there may be none.
pub(crate) fn beginning(guard: &Guard) -> String {
    match guard {
        Guard::Absent => String::new(),
        Guard::OwnedBy(owner) => format!("{} {owner} ", status(Status::InProgress)),
        Guard::Unchanged(seen) => head(seen),
    }
}
