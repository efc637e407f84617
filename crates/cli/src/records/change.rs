//! A change of one record: written only if the record is still the one that was shown.

use lambda_idempotency_core::{
    clock::Timestamp,
    key::Key,
    policy::Policy,
    record::{IdempotencyRecord, Owner, Status},
    store::{Guard, RecordVersion, Store as _, Verdict, Write},
};

use super::{
    connect::Table,
    servers,
    target::{AT_ONCE, Found},
};

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

impl Decision {
    pub(crate) fn refuse(why: &str) -> Self {
        Self::Refuse(why.to_owned())
    }

    pub(crate) fn nothing(why: &str) -> Self {
        Self::Nothing(why.to_owned())
    }
}

/// A key, what was found, and what is to be done.
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) found: Found,
    pub(crate) decision: Decision,
}

/// How a change ended: written or, if not, its name in JSON and why.
pub(crate) type Done = Result<(), (&'static str, String)>;

impl Change {
    /// The record that was found, if there is one that can be read.
    pub(crate) fn record(&self) -> Option<&IdempotencyRecord> {
        self.found.as_ref().ok()?.as_ref()
    }

    /// The write, under the guard that the record is the one that was found.
    fn write(&self) -> Option<Write> {
        let Decision::Write(record) = &self.decision else { return None };
        let found = self.record();
        let guard = found.map_or(Guard::Absent, |found| Guard::Unchanged(RecordVersion::of(found)));
        Some(Write::new(self.key.clone(), guard, record.clone()))
    }
}

/// Writes the changes; the result of each that has something to write, in order.
pub(crate) async fn apply(table: &Table, changes: &[Change]) -> Vec<Done> {
    let writes: Vec<_> = changes.iter().filter_map(Change::write).collect();
    let mut done = Vec::with_capacity(writes.len());
    for some in writes.chunks(AT_ONCE) {
        let verdicts = table.store.write(some, servers::deadline()).await;
        done.extend(some.iter().zip(verdicts).map(|(write, verdict)| match verdict {
            Verdict::Written => Ok(()),
            // The answer of an earlier attempt was lost: what it wrote has a token of its own, or is gone.
            Verdict::Found(found) if found == write.record => Ok(()),
            Verdict::Found(_) => Err((
                "changed-meanwhile",
                "not changed: a worker has changed the record meanwhile; look again".to_owned(),
            )),
            Verdict::EffectRefused(refused) => Err(("failed", format!("not changed: {refused}"))),
            Verdict::Unknown(error) if error.may_have_applied() => Err((
                "failed",
                format!("it is not known whether it was changed; look again: {error}"),
            )),
            Verdict::Unknown(error) => Err(("failed", format!("not changed: {error}"))),
        }));
    }
    done
}

/// The lease of a released record: in the past, but not 0, which some libraries read as "unknown".
const LAPSED: Timestamp = Timestamp::from_millis(1);

/// The record after its claim was given up in the name of its worker. `by` makes it differ from every earlier one.
///
/// If the worker did not give it up itself, its attempt counts as lost, as it would in a takeover: it may have had its
/// effect, so the next handler has to be told, and it may have killed its process, so it stays in quarantine.
pub(crate) fn given_up(found: &IdempotencyRecord, by: Owner) -> IdempotencyRecord {
    let lost = u32::from(found.status == Status::InProgress && !found.is_given_up());
    let mut record = found.clone();
    record.status = Status::InProgress;
    record.lost_attempts = found.lost_attempts.saturating_add(lost);
    record.consecutive_losses = found.consecutive_losses.saturating_add(lost);
    record.owner = None;
    record.last_owner = Some(by);
    record.lease_until = Some(LAPSED);
    record
}

/// What is left of a record so that its work begins from the beginning: nothing, or, if attempts were lost or steps are
/// finished, a released record that tells the next handler of them.
pub(crate) fn reset(
    found: &IdempotencyRecord,
    now: Timestamp,
    by: Owner,
) -> Option<IdempotencyRecord> {
    let mut record = given_up(found, by);
    if record.lost_attempts == 0 && record.steps.is_none() {
        return None;
    }
    record.failed_attempts = 0;
    record.error_type = None;
    record.result = None;
    // The next delivery brings the payload again, maybe under another key. A recovery would do the work of this one as well.
    record.payload = None;
    record.expires_at =
        record.expires_at.max(now.plus(Policy::default().retention).ceil_to_second());
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reset_keeps_finished_steps_and_lost_attempts_and_else_nothing() {
        let now = Timestamp::from_secs(1000);
        let by = Owner::from_bits(7);
        let mut failed = IdempotencyRecord::new(Status::PermanentlyFailed, now);
        failed.failed_attempts = 3;
        failed.error_type = Some("payments::Declined".into());
        assert!(reset(&failed, now, by).is_none());
        let mut steps = failed.clone();
        (steps.steps, steps.payload) = (Some("{}".into()), Some("{}".into()));
        let kept = reset(&steps, now, by).unwrap();
        assert_eq!((kept.steps, kept.failed_attempts, kept.error_type), (steps.steps, 0, None));
        assert_eq!(kept.payload, None, "a recovery would do the work beside its next delivery");
        let mut lost = failed;
        lost.lost_attempts = 2;
        assert_eq!(reset(&lost, now, by).unwrap().lost_attempts, 2);
    }
}
