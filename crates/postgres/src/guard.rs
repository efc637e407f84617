//! A [`Guard`] as a condition, and as the values of its parameters.

use lambda_idempotency_core::{
    record::Status,
    store::{Guard, RecordVersion},
};

use crate::item::{Token, Value, millis, status_text};

/// The columns of a guard, after those of the record. `guard_exact` says whether it is
/// `Unchanged`, which names all of them, or `OwnedBy`, which names the first two.
pub(crate) const GUARD_COLUMNS: [(&str, &str); 6] = [
    ("guard_status", "text"),
    ("guard_owner", "uuid"),
    ("guard_exact", "boolean"),
    ("guard_last_owner", "uuid"),
    ("guard_lease_until", "bigint"),
    ("guard_expires_at", "bigint"),
];

/// The guard of a row holds for the row `t` that is stored.
pub(crate) fn guard<'v>(value: impl Fn(&str) -> &'v str) -> String {
    let [status, owner, exact, last_owner, lease_until, expires_at] =
        GUARD_COLUMNS.map(|(name, _)| value(name));
    format!(
        "t.status = {status} AND t.owner IS NOT DISTINCT FROM {owner} \
         AND (NOT {exact} OR (t.last_owner IS NOT DISTINCT FROM {last_owner} \
         AND t.lease_until IS NOT DISTINCT FROM {lease_until} AND t.expires_at = {expires_at}))"
    )
}

/// The values of a guard, in the order of [`GUARD_COLUMNS`]; `None`
/// for [`Guard::Absent`], under which nothing is compared.
pub(crate) fn guard_values(guard: &Guard) -> Option<[Value<'static>; 6]> {
    let text = |status| Value::Text(Some(status_text(status).into()));
    let token = |owner: Option<_>| Value::Token(owner.map(Token));
    match guard {
        Guard::Absent => None,
        Guard::OwnedBy(owner) => Some([
            text(Status::InProgress),
            token(Some(*owner)),
            Value::Flag(false),
            token(None),
            Value::Number(None),
            Value::Number(None),
        ]),
        Guard::Unchanged(RecordVersion { status, owner, last_owner, lease_until, expires_at }) => {
            Some([
                text(*status),
                token(*owner),
                Value::Flag(true),
                token(*last_owner),
                Value::Number(lease_until.map(millis)),
                Value::Number(Some(millis(*expires_at))),
            ])
        }
    }
}
