//! A change of one record: written only if the record is still the one that was shown.

use lambda_idempotency_core::{
    key::Key,
    record::IdempotencyRecord,
    store::{Guard, RecordVersion, Store as _, Verdict, Write},
};

use super::connect::Table;

/// What is to be done with a key.
#[expect(clippy::large_enum_variant, reason = "a few for each command")]
pub(crate) enum Decision {
    /// This record is to be there, or none.
    Write(Option<IdempotencyRecord>),
    /// It must not be changed, for this reason.
    Refuse(String),
    /// There is nothing to do, for this reason.
    Nothing(String),
}

/// A key, what was found, and what is to be done.
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) found: Option<IdempotencyRecord>,
    pub(crate) decision: Decision,
}

/// How a change ended.
pub(crate) enum Done {
    Written,
    /// A worker has changed the record meanwhile.
    Changed,
    /// It is not known whether it was written, or it was refused.
    Unknown(String),
}

impl Change {
    /// The write, under the guard that the record is the one that was found.
    fn write(&self) -> Option<Write> {
        let Decision::Write(record) = &self.decision else { return None };
        let found = self.found.as_ref();
        let guard = found.map_or(Guard::Absent, |found| Guard::Unchanged(RecordVersion::of(found)));
        Some(Write::new(self.key.clone(), guard, record.clone()))
    }
}

/// Writes the changes; the result of each that has something to write, in order.
pub(crate) async fn apply(table: &Table, changes: &[Change]) -> Vec<Done> {
    let writes: Vec<_> = changes.iter().filter_map(Change::write).collect();
    let verdicts = table.store.write(&writes, Table::deadline()).await;
    let done = verdicts.into_iter().map(|verdict| match verdict {
        Verdict::Written => Done::Written,
        Verdict::Found(_) => Done::Changed,
        Verdict::EffectRefused(refused) => Done::Unknown(refused.to_string()),
        Verdict::Unknown(error) => Done::Unknown(error.to_string()),
    });
    done.collect()
}
