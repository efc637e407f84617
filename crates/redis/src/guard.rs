//! A [`Guard`] as arguments of the script that writes.

use lambda_idempotency_core::store::Guard;

use crate::item::{millis, status};

/// The name of the guard, and the values that it compares; an absent one is empty, which no value is.
pub(crate) fn arguments(guard: &Guard) -> Vec<String> {
    match guard {
        Guard::Absent => vec!["absent".to_owned()],
        Guard::OwnedBy(owner) => vec!["owned".to_owned(), owner.to_string()],
        Guard::Unchanged(seen) => vec![
            "unchanged".to_owned(),
            status(seen.status).to_owned(),
            seen.owner.map_or_else(String::new, |owner| owner.to_string()),
            seen.last_owner.map_or_else(String::new, |owner| owner.to_string()),
            seen.lease_until.map_or_else(String::new, millis),
            millis(seen.expires_at),
        ],
    }
}
